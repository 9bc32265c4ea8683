/**
 * Placeholders of reversible masks. A placeholder contains the text that it replaces, sealed for the client:
 *
 *   [EMAIL_ADDRESS:<sealed "ann@example.com">]
 *
 * So no table is needed: every proxy with the key restores placeholders that the same client sends in later requests,
 * for example in results of tools. Other clients cannot open them. Equal texts of a client have equal placeholders.
 */
import { randomUUID } from 'node:crypto'
import type { MaskRule } from '../../../../engines/core/index.ts'
import { RegexChain } from '../../../../engines/messages/mask/regex-chain.ts'
import { placeholderPattern, RegexGuard } from '../../../../engines/messages/mask/regex-guard.ts'
import type { Seal } from '../../../../ground/secrets/seal.ts'
import type { AiStep } from '../policy/apply.ts'
import { isAudit, isRegex, type PlacedGuard } from '../policy/bind-guard.ts'

/** Longest text that a placeholder holds, in bytes. Models do not repeat longer placeholders reliably. */
const maxText = 256
/** Maximum number of placeholders that one response restores. */
const maxTexts = 126
/** Number of rules of one mask of the core. */
const perMask = 63

const everyPlaceholder = new RegExp(placeholderPattern, 'g')

export class Placeholders {
  readonly #seal: Seal
  readonly #owner: string
  /** Texts by their placeholders. */
  readonly #texts = new Map<string, string>()

  /** Without an `owner`, placeholders can only be opened in the response to this request. */
  constructor(seal: Seal, owner: string | undefined) {
    this.#seal = seal
    this.#owner = owner ?? `request ${randomUUID()}`
  }

  /** Returns the placeholder of a text; undefined if the text is too long or the request has too many placeholders. */
  add(kind: string, text: string): string | undefined {
    if (Buffer.byteLength(text) > maxText) return undefined
    const placeholder = `[${kind}:${this.#seal.sealSame(text, this.#owner)}]`
    if (!this.#texts.has(placeholder) && this.#texts.size >= maxTexts) return undefined
    this.#texts.set(placeholder, text)
    return placeholder
  }

  /** Opens the client's own placeholders in a text, so that the response restores them, too. */
  openIn(text: string): void {
    for (const [placeholder] of text.matchAll(everyPlaceholder)) {
      if (this.#texts.size >= maxTexts) return
      const sealed = placeholder.slice(placeholder.indexOf(':') + 1, -1)
      const opened = this.#texts.has(placeholder) ? undefined : this.#seal.open(sealed, this.#owner)
      if (opened !== undefined) this.#texts.set(placeholder, opened.toString())
    }
  }

  /** Whether a text is a placeholder of the client, rather than one that looks like it. */
  has(text: string): boolean {
    return this.#texts.has(text)
  }

  /** Texts by their placeholders. */
  get texts(): ReadonlyMap<string, string> {
    return this.#texts
  }
}

/** Replaces placeholders in a response by their texts, after all guards. Holds memory of the core. */
export class PlaceholderRestorer {
  /** The policy whose response guards run before. */
  readonly policy: AiStep
  /** Masks that replace placeholders with their texts. */
  readonly guards: readonly PlacedGuard[]
  readonly #texts: ReadonlyMap<string, string>
  #hiding: readonly PlacedGuard[] | undefined
  /** For streams; undefined if another guard needs parsed messages. */
  readonly chain: RegexChain | undefined

  constructor(policy: AiStep, texts: ReadonlyMap<string, string>) {
    this.policy = policy
    this.#texts = texts
    this.guards = guardsOf([...texts].map(([from, to]) => ruleOf(from, to)))
    const acting = policy.responseGuards.filter((placed) => !isAudit(placed))
    const guards = [...acting, ...this.guards].map(({ guard }) => guard)
    const hasScope = acting.some(({ scope }) => scope !== undefined)
    this.chain = !hasScope && guards.every(isRegex) ? new RegexChain(guards) : undefined
  }

  /** Masks that replace the texts with their placeholders, so that guards can judge a stored response. */
  get hidingGuards(): readonly PlacedGuard[] {
    this.#hiding ??= guardsOf([...this.#texts].map(([to, from]) => ruleOf(from, to)))
    return this.#hiding
  }

  /** Releases memory of the core. */
  dispose(): void {
    this.chain?.dispose()
    for (const { guard } of [...this.guards, ...(this.#hiding ?? [])]) guard.dispose()
  }
}

const ruleOf = (text: string, replacement: string): MaskRule => ({
  pattern: text.replaceAll(/[\\^$.|?*+()[\]{}]/g, '\\$&'),
  replacement,
})

/** Returns guards with these rules. */
const guardsOf = (rules: readonly MaskRule[]): readonly PlacedGuard[] =>
  Array.from({ length: Math.ceil(rules.length / perMask) }, (_, at) => ({
    phase: 'Response',
    at: -1,
    guard: new RegexGuard({
      matches: [],
      builtins: [],
      action: 'Mask',
      extraRules: rules.slice(at * perMask, (at + 1) * perMask),
    }),
    settings: { refusal: { status: 403, message: '' } },
  }))

/** Whether a guard is one of a PlaceholderRestorer. */
export const isRestorer = ({ at }: PlacedGuard): boolean => at < 0
