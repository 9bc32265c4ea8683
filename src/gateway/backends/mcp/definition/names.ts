/** Names of tools and prompts without prefixes: what the log knows of them, and clashes. */
import { showHidden } from '../../../../ground/base/hidden-characters.ts'
import { findList, type ObservedLists } from '../../../../ground/model/mcp-lists.ts'
import type {
  McpKnownNames,
  McpPrefixMode,
  McpTarget,
} from '../../../../ground/model/mcp-targets.ts'
import { NameTable } from '../name-table.ts'
import { ToolSelection } from '../tool-selection.ts'

const namedLists = ['tools', 'prompts'] as const
/** Maximum number of names in the condition. */
const maxNamed = 10

/**
 * Returns the names that targets list, so that a proxy that has just started, or cannot reach a target, gives none of
 * its names to another target.
 */
export function namesOf(
  targets: readonly McpTarget[],
  lists: ObservedLists | undefined,
): readonly McpKnownNames[] {
  return targets.flatMap(({ name: target, pinning }) =>
    namedLists.flatMap((list) => {
      const found = findList(lists, target, list)
      if (found === undefined) return []
      // Withheld items must not take a name from another target.
      const names = [...found.items].flatMap(([name, { isGone }]) =>
        isGone === true || (pinning === 'Block' && !found.approved.has(name)) ? [] : [name],
      )
      return [{ target, list, names }]
    }),
  )
}

/** Returns the condition NamesUnique; undefined if names have prefixes. */
export function namesCondition(
  mode: McpPrefixMode,
  targets: readonly McpTarget[],
  lists: ObservedLists | undefined,
) {
  if (mode !== 'Never') return undefined
  const known = namesOf(targets, lists)
  const clashes = namedLists.flatMap((list) => {
    const table = new NameTable(
      mode,
      targets.map(({ name: target, tools }) => {
        const names = known.find((one) => one.target === target && one.list === list)?.names ?? []
        const selection = list === 'tools' && tools ? new ToolSelection(tools) : undefined
        return {
          target,
          names: names.flatMap((one) => selection?.aliasOf(one) ?? (selection ? [] : one)),
        }
      }),
    )
    return [...table.clashes()].map(([name, [first = '', ...others]]) => {
      const what = `${list === 'tools' ? 'tool' : 'prompt'} ${JSON.stringify(showHidden(name))}`
      return `${what} of target ${first} hides that of ${others.join(', ')}`
    })
  })
  const type = 'NamesUnique'
  if (clashes.length === 0) return { type, isTrue: true, reason: 'Unique', message: '' }
  const more = clashes.length > maxNamed ? `; and ${clashes.length - maxNamed} more` : ''
  const message = `${clashes.slice(0, maxNamed).join('; ')}${more}: rename or exclude one of them in tools of its target, or use prefixMode Conditional`
  return { type, isTrue: false, reason: 'NameClash', message }
}
