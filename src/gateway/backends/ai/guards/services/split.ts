/** Divides texts into pieces that overlap, and joins what services have masked in them. */
import type { RoleText } from '../../../../../engines/messages/mask/slot.ts'
import type { Part, Piece } from './service.ts'

/** Limits of one call. */
interface PieceLimits {
  /** Maximum number of UTF-16 units in all parts together. */
  readonly length: number
  /** Maximum number of parts. */
  readonly parts: number
}

/** Number of UTF-16 units that two adjacent parts of a text share, so that a match across their border is whole in one. */
const overlap = 500

/** A text is cut after a space if the last units of a part, as many as this, contain one. */
const wordLength = 100

/** Puts texts into pieces in their order; a text that is too long is divided. */
export function piecesOf(texts: readonly RoleText[], limits: PieceLimits): readonly Piece[] {
  const pieces: Part[][] = []
  let open: Part[] = []
  let room = limits.length
  for (const part of texts.flatMap((text, at) => partsOf(text, at, limits.length))) {
    if (open.length === limits.parts || part.content.length > room) {
      open = []
      room = limits.length
    }
    if (open.length === 0) pieces.push(open)
    open.push(part)
    room -= part.content.length
  }
  return pieces.map((parts) => ({ parts }))
}

function partsOf({ role, content }: RoleText, text: number, length: number): Part[] {
  if (content === '') return []
  const parts: Part[] = []
  let start = 0
  for (;;) {
    const end =
      content.length - start <= length ? content.length : cutBefore(content, start + length)
    parts.push({ text, role, start, content: content.slice(start, end) })
    if (end === content.length) return parts
    start = whole(content, end - overlap)
  }
}

/** Returns the last position up to `limit` that is after a space; if there is none, one that splits no character. */
function cutBefore(content: string, limit: number): number {
  const space = content.slice(limit - wordLength, limit).search(/\s\S*$/)
  return space < 0 ? whole(content, limit) : limit - wordLength + space + 1
}

/** Returns the position, or the one before it if it lies in a surrogate pair. */
function whole(content: string, at: number): number {
  const unit = content.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff ? at - 1 : at
}

/**
 * Joins the masked parts of a text. Adjacent parts are cut where both have left their common text as it is; undefined if
 * there is no such place.
 */
export function joinParts(
  parts: readonly { readonly part: Part; readonly masked: string }[],
): string | undefined {
  const [first, ...others] = parts
  if (first === undefined) return ''
  let joined = first.masked
  let { part: before } = first
  for (const { part, masked } of others) {
    const shared = before.content.slice(part.start - before.start)
    const at = cutIn(shared, joined, masked)
    if (at === undefined) return undefined
    joined = joined.slice(0, joined.length - (shared.length - at)) + masked.slice(at)
    before = part
  }
  return joined
}

/** Returns where to cut a common text: `left` must end with the rest of it, and `right` begin with what is before. */
function cutIn(shared: string, left: string, right: string): number | undefined {
  const middle = shared.length >> 1
  for (let distance = 0; distance <= shared.length - middle; distance++) {
    for (const at of [middle - distance, middle + distance]) {
      if (at < 0 || at > shared.length) continue
      if (left.endsWith(shared.slice(at)) && right.startsWith(shared.slice(0, at))) return at
    }
  }
  return undefined
}
