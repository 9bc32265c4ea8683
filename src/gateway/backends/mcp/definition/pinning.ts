/** Pinning: which versions of tools, prompts and resources are approved, and which are not. */
import { countHidden, showHidden } from '../../../../ground/base/hidden-characters.ts'
import {
  findList,
  isApproved,
  mcpLists,
  type ObservedList,
  type ObservedLists,
} from '../../../../ground/model/mcp-lists.ts'
import type { McpPins, McpTarget } from '../../../../ground/model/mcp-targets.ts'

/** Maximum number of items that the condition names. */
const maxNamed = 10

/** Returns the approved versions of targets with `Block`, as proxies enforce them. */
export function pinsOf(
  targets: readonly McpTarget[],
  lists: ObservedLists | undefined,
): readonly McpPins[] {
  if (lists === undefined) return []
  return targets.flatMap(({ name: target, pinning }) =>
    pinning === 'Block' ? mcpLists.flatMap((list) => pinsIn(findList(lists, target, list))) : [],
  )
}

function pinsIn(found: ObservedList | undefined): readonly McpPins[] {
  if (found === undefined) return []
  const { target, list, approved } = found
  return [{ target, list, items: Array.from(approved, ([name, digest]) => ({ name, digest })) }]
}

/** Returns the condition ToolsApproved; undefined if pinning is off. */
export function approvedCondition(targets: readonly McpTarget[], lists: ObservedLists | undefined) {
  const pinned = targets.filter(({ pinning }) => pinning !== undefined)
  if (pinned.length === 0) return undefined
  const type = 'ToolsApproved'
  const changed = pinned.flatMap(({ name, pinning }) => {
    const isHidden = pinning === 'Block'
    return (lists ?? [])
      .filter(({ target }) => target === name)
      .flatMap((one) => unapproved(one, isHidden))
  })
  if (changed.length === 0) {
    return { type, isTrue: true, reason: 'Approved', message: '' }
  }
  const more = changed.length > maxNamed ? `; and ${changed.length - maxNamed} more` : ''
  const named = changed.slice(0, maxNamed).join('; ')
  const message = `${named}${more}; to review and approve them, use sluice tools diff and sluice tools approve`
  return { type, isTrue: false, reason: 'ChangeNotApproved', message }
}

/** Describes the items of a list whose present version is not approved. */
function unapproved(list: ObservedList, isHidden: boolean): readonly string[] {
  const word = wordOf[list.list]
  return [...list.items].flatMap(([name, item]) => {
    if (isApproved(list, name, item)) return []
    const isChanged = list.approved.has(name)
    const what = `target ${list.target}: ${word} ${JSON.stringify(showHidden(name))} ${isChanged ? 'has changed' : 'is new'}`
    const count = countHidden(`${name}${item.definition ?? ''}`)
    const hidden = count === 0 ? '' : ` (${count} hidden characters)`
    return [`${what}${hidden}${isHidden ? ', and is withheld from clients' : ''}`]
  })
}

const wordOf: Readonly<Record<ObservedList['list'], string>> = {
  tools: 'tool',
  prompts: 'prompt',
  resources: 'resource',
  resourceTemplates: 'resource template',
  agents: 'agent',
}
