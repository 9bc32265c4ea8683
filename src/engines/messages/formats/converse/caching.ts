/** Places the cache points of a prompt caching policy, for models that support them. */
import type { ModelFacts } from '../../catalog/facts.ts'
import type { Block, Chat } from '../../chat.ts'

export interface CachingPolicy {
  readonly cacheSystem: boolean
  readonly cacheMessages: boolean
  readonly cacheTools: boolean
  /** Estimated number of tokens below which nothing is cached; 0 or more. */
  readonly minTokens: number
}

/** Maximum number of cache points that the provider accepts in one request. */
export const maxCachePoints = 4

/** Estimates tokens as the policy's `minTokens` defines: words times 1.3. */
const estimateTokens = (text: string): number => Math.floor((text.match(/\S+/g)?.length ?? 0) * 1.3)

/** Returns the texts of a block whose tokens are estimated. */
function textsOf(block: Block): string[] {
  switch (block.type) {
    case 'text':
    case 'thinking':
      return [block.text]
    case 'tool-call':
      return [JSON.stringify(block.input)]
    case 'tool-result':
      return block.content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    default:
      return []
  }
}

export interface CachePoints {
  readonly system: boolean
  readonly tools: boolean
  /** Positions of the turns that get a cache point after their last block. */
  readonly turns: ReadonlySet<number>
}

const noPoints: CachePoints = { system: false, tools: false, turns: new Set() }

/** Returns the cache points of a policy; system, tools and messages are estimated separately. */
export function policyPoints(
  chat: Chat,
  { caching, facts }: { readonly caching?: CachingPolicy; readonly facts: ModelFacts },
): CachePoints {
  if (caching === undefined || !facts.cacheLifetimes?.length) return noPoints
  const { cacheSystem, cacheMessages, cacheTools, minTokens } = caching
  const isEnough = (text: string) => estimateTokens(text) >= minTokens
  const system =
    cacheSystem &&
    chat.system.length > 0 &&
    isEnough(chat.system.map(({ text }) => text).join('\n'))
  const tools = cacheTools && chat.tools.length > 0 && isEnough(JSON.stringify(chat.tools))
  const left = maxCachePoints - Number(system) - Number(tools)
  const last = chat.turns.length - 1
  const wanted =
    cacheMessages && isEnough(chat.turns.flatMap(({ blocks }) => blocks.flatMap(textsOf)).join(' '))
      ? [last, last - 1]
      : []
  return { system, tools, turns: new Set(wanted.filter((at) => at >= 0).slice(0, left)) }
}
