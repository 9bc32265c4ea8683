import type { RecordedDecision } from '../../src/decisions/record.ts'

/** Counts recorded calls by tool, target, status and what decided. */
export function toolCalls(
  records: readonly Partial<RecordedDecision>[],
): readonly (readonly (string | number)[])[] {
  const counts = new Map<string, number>()
  for (const { details = {}, response } of records) {
    const tool = details['gen_ai.tool.name']
    // The last line of the answer is a summary, which has no response.
    if (tool === undefined || response === undefined) continue
    const why = response.status < 400 ? '' : (response.detail ?? response.reason)
    const row = [`${tool}`, `${details['mcp.target'] ?? ''}`, `${response.status}`, why]
    const key = JSON.stringify(row)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return [...counts]
    .map(([key, count]) => [...(JSON.parse(key) as string[]), count])
    .sort((a, b) => Number(b.at(-1)) - Number(a.at(-1)))
}
