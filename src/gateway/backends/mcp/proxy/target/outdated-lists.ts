/** What threads forget if a target says that one of its lists has changed. */
import type { McpItemType } from '../../../../../ground/exchange/mcp.ts'
import type { McpList } from '../../../../../ground/model/mcp-lists.ts'
import { listMethods } from '../../methods.ts'
import { forgetCachedLists } from './cached-lists.ts'
import { seenList } from './target-lists.ts'
import type { McpTargetEntry } from './targets.ts'
import { forgetToolLists } from './tool-lists.ts'

/** The list that has the items of a type. */
export const listOfType: Readonly<Record<McpItemType, McpList>> = {
  tool: 'tools',
  prompt: 'prompts',
  resource: 'resources',
}

export const saysListChanged = (notification: string): boolean =>
  notification.endsWith('/list_changed')

export function outdateLists(entry: McpTargetEntry, notification: string): void {
  for (const { type, member: list } of listMethods) {
    if (notification === `notifications/${listOfType[type]}/list_changed`)
      seenList(entry, list).outdate()
  }
  forgetToolLists(entry)
  forgetCachedLists(entry)
}
