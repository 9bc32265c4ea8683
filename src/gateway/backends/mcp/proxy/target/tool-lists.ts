/** The tools that targets list for clients, which are kept for a while, so that a search need not ask for them. */
import { BoundedMap, ExpiringMap } from '../../../../../ground/base/bounded-map.ts'
import { hexDigest } from '../../../../../ground/base/digest.ts'
import { member, rawOf } from '../../json/node.ts'
import type { McpResponse } from '../../message.ts'
import { type McpTargetEntry, TargetMemory } from './targets.ts'

/** All pages of the list of a target. */
export interface ToolList {
  /** Equal for lists with the same tools. */
  readonly digest: string
  readonly pages: readonly McpResponse[]
}

/** How long a list is used for the searches of a client. */
const keptMs = 60_000
const maxClients = 256
/** Maximum number of different lists of a target, which servers may make for each client. */
const maxLists = 8
/** Maximum length of a list that is kept. */
const maxLength = 8_388_608

class KeptLists {
  readonly byClient = new ExpiringMap<string, string>(maxClients, keptMs)
  readonly byDigest = new BoundedMap<string, ToolList>(maxLists)
}

interface Memory {
  lists: KeptLists
}

const memory = new TargetMemory<Memory>(() => ({ lists: new KeptLists() }))

/** `client` identifies who has got the list. */
export function knownToolList(entry: McpTargetEntry, client: string): ToolList | undefined {
  const { byClient, byDigest } = memory.of(entry).lists
  const digest = byClient.get(client)
  return digest === undefined ? undefined : byDigest.get(digest)
}

export function toolListOf(pages: readonly McpResponse[]): ToolList {
  const texts = pages.map(({ text, result }) => {
    const tools = member(result, 'tools')
    return tools === undefined ? '' : rawOf(text, tools)
  })
  return { digest: hexDigest('sha256', texts.join('\n')), pages }
}

/** Keeps a list, unless it is too long. Clients with the same tools share one. */
export function keepToolList(
  entry: McpTargetEntry,
  client: string,
  pages: readonly McpResponse[],
): ToolList {
  const { digest } = toolListOf(pages)
  const { byClient, byDigest } = memory.of(entry).lists
  const list = byDigest.get(digest) ?? { digest, pages }
  if (pages.reduce((sum, { text }) => sum + text.length, 0) > maxLength) return list
  byClient.set(client, digest)
  byDigest.set(digest, list)
  return list
}

/** Called if the target may list other tools from now on. */
export function forgetToolLists(entry: McpTargetEntry): void {
  memory.of(entry).lists = new KeptLists()
}
