/** Targets that are commands (stdio): what proxies get of them, and whether a gateway runs them. */
import { parseDurationMs } from '../../../../ground/base/duration.ts'
import type { McpTarget } from '../../../../ground/model/mcp-targets.ts'
import type { SecretRef } from '../../../../ground/model/secret-ref.ts'
import type { BackendReader } from '../../define.ts'
import type { StdioTarget } from '../stdio/settings.ts'
import type { McpSpec } from './schema.ts'

type StdioSpec = NonNullable<McpSpec['targets'][number]['stdio']>

/** Names that would change the programs that confine a server, before they confine it. */
const refusedNames = /^(?:LD_|DYLD_|GLIBC_)/

/** Returns the target, or why it cannot be served. */
export function stdioTargetOf(
  name: string,
  spec: StdioSpec,
  place: string,
  reader: BackendReader,
): McpTarget | string {
  const { command, env = [], workingDirectory, scope = 'Session', network = false } = spec
  const [program, ...rest] = command
  if (program === undefined) return `${place}.command: is empty`
  const secrets: SecretRef[] = []
  const variables: StdioTarget['env'][number][] = []
  for (const [at, { name: variable, value = '', secretRef }] of env.entries()) {
    const where = `${place}.env[${at}]`
    if (refusedNames.test(variable)) {
      return `${where}.name: ${variable} would change the programs that confine the server`
    }
    if (secretRef === undefined) variables.push({ name: variable, value })
    else {
      const found = reader.secret(secretRef.name)
      const ref = found?.ref(secretRef.key)
      const what = found === undefined ? 'does not exist' : `has no key ${secretRef.key}`
      if (ref === undefined) return `${where}.secretRef: Secret ${secretRef.name} ${what}`
      secrets.push(ref)
      variables.push({ name: variable, secret: ref.digest })
    }
  }
  const stdio: StdioTarget = {
    command: [program, ...rest],
    env: variables,
    scope,
    network,
    limits: limitsOf(spec),
    ...(workingDirectory !== undefined && { workingDirectory }),
  }
  return {
    name,
    sections: [name],
    protocol: 'StreamableHTTP',
    path: '/',
    stdio: JSON.stringify(stdio),
    ...(secrets.length > 0 && { secrets }),
    destination: noDestination,
  }
}

/** Proxies connect to the process that runs the command. */
const noDestination = { type: 'static', host: '127.0.0.1', port: 1 } as const

const mebibyte = 1024 * 1024

function limitsOf({ limits = {} }: StdioSpec): StdioTarget['limits'] {
  return {
    memoryBytes: limits.memory ?? 1024 * mebibyte,
    openFiles: limits.openFiles ?? 1024,
    processes: limits.processes ?? 256,
    instances: limits.instances ?? 64,
    timeoutMs: parseDurationMs(limits.timeout) ?? 60_000,
    messageBytes: limits.messageSize ?? 4 * mebibyte,
  }
}

/** Returns the condition StdioServers; undefined if no target is a command. */
export function stdioCondition(targets: readonly McpTarget[], reader: BackendReader) {
  if (!targets.some(({ stdio }) => stdio !== undefined)) return undefined
  const type = 'StdioServers'
  const enabled = reader.stdioSettings()
  if (enabled.length === 0) {
    const message =
      'commands are not run: set spec.stdio of the GatewayParameters of the Gateway or its class, or start sluice run with --stdio-servers true'
    return { type, isTrue: false, reason: 'Disabled', message }
  }
  const opened = targets.filter(({ stdio }) => {
    return stdio !== undefined && !(JSON.parse(stdio) as StdioTarget).network
  })
  const parts = enabled.map(({ by, network }) => {
    const note = opened.length > 0 && network !== undefined ? ` (${network})` : ''
    return `${by}${note}`
  })
  return {
    type,
    isTrue: true,
    reason: 'Enabled',
    message: `commands run at Gateways with ${parts.join(', ')}`,
  }
}
