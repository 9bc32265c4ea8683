import type { RecordedDecision } from '../../src/decisions/record.ts'

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
