/** Where the cache points of a prompt caching policy go, and whether a model knows them. */
import type { Chat } from '../../chat.ts'

export interface CachingPolicy {
  readonly cacheSystem: boolean
  readonly cacheMessages: boolean
  readonly cacheTools: boolean
  /** Estimated tokens, 0 or more. */
  readonly minTokens: number
}

/** Cache points that the provider takes in one request. */
export const maxCachePoints = 4

/** Does the model know cache points? Application inference profiles are trusted to. */
function supportsCaching(model: string): boolean {
  if (model.includes('application-inference-profile')) return true
  if (model.includes('amazon.nova')) return true
  return (
    model.includes('anthropic.claude') && !/anthropic\.claude-(instant|v1|v2)(?![0-9])/.test(model)
  )
}

/** The estimate that the interface defines: words times 1.3. */
function estimateTokens(text: string): number {
  const words = text.match(/\S+/g)?.length ?? 0
  return Math.floor(words * 1.3)
}

function messageText({ turns }: Chat): string {
  return turns
    .flatMap(({ blocks }) =>
      blocks.flatMap((block) => {
        if (block.type === 'text' || block.type === 'thinking') return [block.text]
        if (block.type === 'tool-call') return [JSON.stringify(block.input)]
        if (block.type === 'tool-result') {
          return block.content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
        }
        return []
      }),
    )
    .join(' ')
}

export interface CachePoints {
  readonly system: boolean
  readonly tools: boolean
  /** Positions of turns after whose last block a point goes. */
  readonly turns: ReadonlySet<number>
}

const nothing: CachePoints = { system: false, tools: false, turns: new Set() }

/** Cache points by policy; each kind is measured by its own estimate. */
export function policyPoints(chat: Chat, policy: CachingPolicy | undefined): CachePoints {
  if (policy === undefined || !supportsCaching(chat.model)) return nothing
  const { cacheSystem, cacheMessages, cacheTools, minTokens } = policy
  const isEnough = (text: string) => estimateTokens(text) >= minTokens
  const system =
    cacheSystem &&
    chat.system.length > 0 &&
    isEnough(chat.system.map(({ text }) => text).join('\n'))
  const tools = cacheTools && chat.tools.length > 0 && isEnough(JSON.stringify(chat.tools))
  const left = maxCachePoints - Number(system) - Number(tools)
  const last = chat.turns.length - 1
  const wanted = cacheMessages && isEnough(messageText(chat)) ? [last, last - 1] : []
  return { system, tools, turns: new Set(wanted.filter((at) => at >= 0).slice(0, left)) }
}
