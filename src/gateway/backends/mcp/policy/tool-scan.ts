/** Searches definitions of tools, prompts and resources for instructions to models and for hidden characters. */
import { MatchCounts } from '../../../../engines/messages/mask/match-counts.ts'
import { compileGuardMask } from '../../../../engines/messages/mask/regex-guard.ts'
import { BoundedMap } from '../../../../ground/base/bounded-map.ts'
import { countHidden } from '../../../../ground/base/hidden-characters.ts'
import type { ToolGuardConfig } from './calls-config.ts'

/** Phrases of known attacks by descriptions (tool poisoning). */
const defaultMatches: readonly string[] = [
  String.raw`(?i)\b(?:ignore|disregard|forget) (?:all |any )?(?:of )?(?:the |your )?(?:previous|prior|above|earlier) (?:instructions|prompts|rules|messages)\b`,
  String.raw`(?i)\b(?:do not|don't|never) (?:tell|inform|mention|reveal|show)(?: this| it| any of this)?(?: to)? the user\b`,
  String.raw`(?i)<\s*(?:important|system|instructions?|secret)\s*>`,
  String.raw`(?i)\bbefore (?:using|calling|you (?:use|call)) (?:this|any(?: other)?|other) tools?\b`,
  String.raw`(?i)(?:~/\.ssh|\bid_rsa\b|\.aws/credentials|/etc/passwd|mcp\.json\b)`,
  String.raw`(?i)\b(?:without|before) (?:asking|telling|informing|notifying) the user\b`,
]

/** Number of versions whose findings are kept. */
const maxKept = 16_384

export class ToolScan {
  readonly hides: boolean
  readonly #matches: readonly string[]
  readonly #searchesHidden: boolean
  #mask: ReturnType<typeof compileGuardMask> | undefined
  readonly #findings = new BoundedMap<string, string>(maxKept)

  constructor({ matches = defaultMatches, hiddenCharacters, hides }: ToolGuardConfig) {
    this.hides = hides
    this.#matches = matches
    this.#searchesHidden = hiddenCharacters
  }

  /** What was found in a version; empty if nothing was, undefined if it was not searched. */
  known(digest: string): string | undefined {
    return this.#findings.get(digest)
  }

  /** Searches a version, unless it was searched before. Returns what was found; empty if nothing was. */
  search(digest: string, definition: string): string {
    const known = this.#findings.get(digest)
    if (known !== undefined) return known
    const found = this.#search(textOf(definition))
    this.#findings.set(digest, found)
    return found
  }

  #search(text: string): string {
    const found: string[] = []
    const hidden = this.#searchesHidden ? countHidden(text) : 0
    if (hidden > 0) found.push(`${hidden} hidden characters`)
    if (this.#matches.length > 0) {
      this.#mask ??= compileGuardMask({ matches: this.#matches, builtins: [] })
      const counts = new MatchCounts()
      const mask = this.#mask
      mask.apply(text, (rule) => counts.add(mask, rule))
      const matches = counts.textOf(mask)
      if (matches !== undefined) found.push(matches)
    }
    return found.join(', ')
  }

  dispose(): void {
    this.#mask?.dispose()
    this.#mask = undefined
  }
}

/** All strings of a definition, without escapes that could hide something. `_meta` and `icons` are not in its version. */
function textOf(definition: string): string {
  const { _meta, icons, ...shown } = JSON.parse(definition) as Record<string, unknown>
  const texts: string[] = []
  collect(shown, texts)
  return texts.join('\n')
}

function collect(value: unknown, texts: string[]): void {
  if (typeof value === 'string') texts.push(value)
  else if (typeof value === 'object' && value !== null) {
    if (!Array.isArray(value)) texts.push(...Object.keys(value))
    for (const one of Object.values(value)) collect(one, texts)
  }
}
