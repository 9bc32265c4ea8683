/** `sluice tools` lists what MCP servers list, as proxies have seen it. */
import { countHidden, showHidden } from '../../../ground/base/hidden-characters.ts'
import { maxReturns } from '../../../ground/model/mcp-lists.ts'
import { type ItemFilter, type ListedItemRow, rowsOf } from '../../../past/explain/listed-items.ts'
import { type RecordingOptions, readState } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, table } from '../shared/output.ts'
import { shortDigest } from './item-text.ts'

export interface ListOptions extends RecordingOptions, ItemFilter {}

/** The exit code is 1 if nothing is listed. */
export async function listItems(
  options: ListOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const { fold } = await readState(options, report)
  const rows = rowsOf(fold, options).filter(({ state }) => state !== 'gone')
  if (rows.length === 0) {
    report('no proxy has reported what an MCP server lists')
    return { text: () => [], json: [], exitCode: exitCode.negative }
  }
  return { text: () => [table([header, ...rows.map(cellsOf)])], json: rows.map(jsonOf) }
}

const header = ['BACKEND', 'TARGET', 'LIST', 'NAME', 'VERSION', 'SINCE', 'STATE']

const cellsOf = ({ backend, target, list, name, item, state }: ListedItemRow): string[] => [
  backend,
  target,
  list,
  showHidden(name),
  shortDigest(item.digest),
  item.since,
  [state, ...remarksOn(item)].join(', '),
]

function remarksOn({ definition = '', returns }: ListedItemRow['item']): string[] {
  const count = countHidden(definition)
  return [
    ...(count > 0 ? [`${count} hidden characters`] : []),
    ...(returns >= maxReturns ? ['differs among clients'] : []),
  ]
}

const jsonOf = ({ item, ...row }: ListedItemRow) => ({
  ...row,
  digest: item.digest,
  since: item.since,
  firstSeen: item.firstSeen,
  ...(item.definition !== undefined && {
    definition: JSON.parse(item.definition) as unknown,
    hiddenCharacters: countHidden(item.definition),
  }),
})
