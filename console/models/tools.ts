import type { RecordedDecision } from '../../src/past/decisions/record.ts'
import { type Sample, sumBy } from '../source/prometheus.ts'

/** A row for each tool, target, status, authorization and reason, with the number of recorded calls. */
export function toolCalls(
  records: readonly Partial<RecordedDecision>[],
): readonly (readonly (string | number)[])[] {
  const counts = new Map<string, number>()
  for (const { details = {}, steps = [], response } of records) {
    const tool = details['gen_ai.tool.name']
    // The last line of the answer is a summary, which has no response.
    if (tool === undefined || response === undefined) continue
    const target = `${details['mcp.target'] ?? ''}`
    const refusal = refusalOf(`${tool}`, target, steps)
    const failure = response.status < 400 ? '' : (response.detail ?? response.reason)
    const row = [
      `${tool}`,
      target,
      `${response.status}`,
      refusal === undefined ? 'not refused' : 'refused',
      refusal ?? failure,
    ]
    const key = JSON.stringify(row)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return [...counts]
    .map(([key, count]) => [...(JSON.parse(key) as string[]), count])
    .sort((a, b) => Number(b.at(-1)) - Number(a.at(-1)))
}

/** Methods that are about one item, and so about the target that has it. */
const itemMethods =
  /^(?:tools\/call|prompts\/get|resources\/(?:read|(?:un)?subscribe)|completion\/|tasks\/)/

/** The target of a message in the metrics, which have the label `unknown` for messages that no target got. */
export function targetText(method: string, target: string): string {
  if (target !== '' && target !== 'unknown') return target
  return itemMethods.test(method) ? 'none has the item' : 'all, answered by the gateway'
}

/**
 * A row for each backend, with the numbers of sessions that began and of those that did not. Ids of sessions are
 * credentials, so that neither metrics nor recorded requests have them.
 */
export function mcpSessions(
  samples: readonly Sample[],
): readonly (readonly [backend: string, begun: number, failed: number])[] {
  const begins = samples.filter(({ labels }) => labels.method === 'initialize')
  const sums = sumBy(begins, 'sluice_mcp_requests_total', ['backend', 'result'])
  return [...Map.groupBy(sums, ({ labels: [backend = ''] }) => backend)]
    .map(([backend, results]) => {
      const countOf = (result: string) =>
        results.find(({ labels }) => labels[1] === result)?.value ?? 0
      return [backend, countOf('ok'), countOf('error')] as const
    })
    .sort((a, b) => b[1] - a[1])
}

const noted = 'tools/call of tool '

/** Why the rules for MCP refused the call of a tool; the record of a batch may have notes about others. */
function refusalOf(tool: string, target: string, steps: RecordedDecision['steps']) {
  const end = ` of target ${target}: `
  for (const { step, notes } of steps) {
    if (step !== 'backend.mcp') continue
    for (const note of notes) {
      const at = note.indexOf(end)
      const name = note.slice(noted.length, at)
      const isOwn = name === tool || (name.endsWith('…') && tool.startsWith(name.slice(0, -1)))
      if (note.startsWith(noted) && at > 0 && isOwn) return note.slice(at + end.length)
    }
  }
  return undefined
}

/** A client that asked an MCP backend for its tools, or called one. */
interface ToolAgent {
  /** The principal, or the address of a client that is not known. */
  readonly agent: string
  /** Number of recorded requests that listed the tools of the backend. */
  readonly listed: number
  /** Number of recorded calls of the tool, whatever became of them. */
  readonly called: number
  /** Time and id of the last of these requests. */
  readonly last: string
  readonly id: string
}

/** Who a request belongs to: its principal, or else the dimensions of its identity. */
function agentOf(details: RecordedDecision['details']): string {
  const prefix = 'identity.'
  const dimensions = Object.entries(details).filter(([name]) => name.startsWith(prefix))
  const principal = dimensions.find(([name]) => name === `${prefix}principal`)
  if (principal !== undefined) return `${principal[1]}`
  return dimensions.map(([name, value]) => `${name.slice(prefix.length)}=${value}`).join(', ')
}

/** Methods whose results have the items of a list. */
const listMethods: Readonly<Record<string, string>> = {
  tools: 'tools/list',
  prompts: 'prompts/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
}

/** Who listed or called an item, by the records of requests to its backend; the last one comes first. */
export function toolAgents(
  records: readonly Partial<RecordedDecision>[],
  { list, name, target }: { readonly list: string; readonly name: string; readonly target: string },
): ToolAgent[] {
  const agents = new Map<string, ToolAgent>()
  for (const { details = {}, id = '', time = '', request } of records) {
    if (request === undefined) continue
    const tool = details['gen_ai.tool.name']
    const isCall = tool === name || tool === `${target}_${name}`
    const isList = details['mcp.method.name'] === listMethods[list]
    if (!isCall && !isList) continue
    const agent = agentOf(details) || `not known (${request.source})`
    const { listed = 0, called = 0 } = agents.get(agent) ?? {}
    agents.delete(agent)
    const counts = { listed: listed + Number(isList), called: called + Number(isCall) }
    agents.set(agent, { agent, ...counts, last: time, id })
  }
  return [...agents.values()].reverse()
}
