/**
 * Pinning of agent cards. The public card and the extended card of an agent are one list each, with one item, so
 * that the card that is seen first is approved, whichever it is.
 */
import { countHidden, showHidden } from '../../../../ground/base/hidden-characters.ts'
import { findList, isApproved, type ObservedLists } from '../../../../ground/model/mcp-lists.ts'
import type { McpPins } from '../../../../ground/model/mcp-targets.ts'
import { cardList, cardTargets } from '../protocol/card-list.ts'

export function pinsOfCards(lists: ObservedLists | undefined): readonly McpPins[] {
  return cardTargets.flatMap((target) => {
    const seen = findList(lists, target, cardList)
    if (seen === undefined) return []
    const items = Array.from(seen.approved, ([name, digest]) => ({ name, digest }))
    return [{ target, list: cardList, items }]
  })
}

/** Returns the condition AgentApproved. */
export function approvedCardCondition(lists: ObservedLists | undefined, pinning: 'Warn' | 'Block') {
  const type = 'AgentApproved'
  const changed = cardTargets.flatMap((target) => {
    const seen = findList(lists, target, cardList)
    return [...(seen?.items ?? [])].flatMap(([name, item]) => {
      if (seen === undefined || isApproved(seen, name, item)) return []
      const count = countHidden(item.definition ?? '')
      const hidden = count === 0 ? '' : ` (${count} hidden characters)`
      return [`the ${showHidden(name)} of target ${target} has changed${hidden}`]
    })
  })
  if (changed.length === 0) return { type, isTrue: true, reason: 'Approved', message: '' }
  const effect = pinning === 'Block' ? ', and is withheld from clients' : ''
  const message = `${changed.join('; ')}${effect}; to review and approve it, use sluice tools diff and sluice tools approve`
  return { type, isTrue: false, reason: 'ChangeNotApproved', message }
}
