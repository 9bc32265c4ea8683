/** The contract of the services that guards ask: one entry of the table in `index.ts` for each. */
import type { JsonObject } from '../../../../../engines/messages/json/json.ts'
import type { RoleText } from '../../../../../engines/messages/mask/slot.ts'
import type { Direction } from '../ask-guard.ts'

/** A part of a text. `start` is its position in the text, in UTF-16 units. */
export interface Part {
  /** Index of the text in the message. */
  readonly text: number
  readonly role: string
  readonly start: number
  readonly content: string
}

/** What one call checks. */
export interface Piece {
  readonly parts: readonly Part[]
  /** What the service checks, if it has several checks. */
  readonly check?: string
}

/** What a service says about a piece. `matches` has names of rules, and no part of a text. */
export interface Verdict {
  readonly rejects: boolean
  readonly matches: readonly string[]
  /** A text for each part; omitted if the service has masked nothing. */
  readonly masked?: readonly string[]
}

export const passes: Verdict = { rejects: false, matches: [] }

export interface GuardService<Config> {
  /** Whether the service may mask texts. */
  masks(config: Config): boolean
  /** Host of the service, unless a backend is configured; undefined if there is none. */
  host(config: Config): string | undefined
  /** Divides the texts of a message, so that each piece is small enough for a call. */
  split(texts: readonly RoleText[], direction: Direction, config: Config): readonly Piece[]
  /** Path with query, and body of the call for a piece. */
  call(
    piece: Piece,
    direction: Direction,
    config: Config,
  ): { readonly path: string; readonly body: JsonObject }
  /** Reads the answer. @throws GatewayError prompt_guard_failed if it is not one that the service documents */
  verdict(answer: unknown, piece: Piece, config: Config): Verdict
}
