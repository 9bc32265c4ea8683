/** Reads the definition of a server that a proxy sends. */
import type { StdioServer } from '../backends/mcp/stdio/settings.ts'

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns a text if it is not valid. Proxies of another version may send other definitions. */
export function readServer(body: string): StdioServer | string {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return 'the definition is not JSON'
  }
  if (!isRecord(value)) return 'the definition is not an object'
  const { command, env, limits, label, scope, network } = value
  if (!isTexts(command) || command.length === 0) return 'command must be a list of texts'
  if (!isRecord(env) || !isTexts(Object.values(env))) return 'env must have texts'
  if (!isRecord(limits) || !Object.values(limits).every((one) => typeof one === 'number')) {
    return 'limits must be numbers'
  }
  if (typeof label !== 'string' || typeof network !== 'boolean') return 'members are missing'
  if (scope !== 'Session' && scope !== 'Principal' && scope !== 'Shared') return 'unknown scope'
  return value as unknown as StdioServer
}
