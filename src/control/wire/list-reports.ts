/** Reports of what MCP servers list, as the configuration stream carries them: JSON. */
import { choice, flag, list, optional, problemOf, record, text } from '../../ground/base/shape.ts'
import { type ListReport, mcpLists } from '../../ground/model/mcp-lists.ts'

const shape = record({
  backend: text,
  target: text,
  list: choice(...mcpLists),
  pinning: choice('Off', 'Warn', 'Block'),
  items: list(record({ name: text, digest: text, definition: optional(text) })),
  removed: list(text),
  isComplete: flag,
  isFirst: flag,
  isLast: flag,
})

export const encodeListReport = (report: ListReport): Uint8Array =>
  Buffer.from(JSON.stringify(report))

/** @throws if the bytes are not a report */
export function decodeListReport(bytes: Uint8Array): ListReport {
  const value: unknown = JSON.parse(Buffer.from(bytes).toString())
  const problem = problemOf(shape, value)
  if (problem !== undefined) throw new Error(`a report of a list is not valid: ${problem}`)
  return value as ListReport
}
