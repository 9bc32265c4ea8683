/** What a body asks of its transforms. */

import { copyOf } from '../../../ground/base/buffers.ts'
import type { BodyTransform, ByteSpan, OmittedBytes } from '../../../ground/exchange/exchange.ts'
import { copyLimit } from '../bytes/write-limits.ts'

const nothing: OmittedBytes = { cutStart: 0, cutEnd: 0 }

/** Returns which of the bytes to omit; undefined if the transforms must get a copy of them. */
export function omittedBytes(
  transforms: readonly BodyTransform[] | undefined,
  bytes: Buffer,
  start: number,
  end: number,
): OmittedBytes | undefined {
  if (transforms === undefined) return nothing
  // A sink would keep a reference to more than `copyLimit` bytes.
  if (transforms.length !== 1 || end - start > copyLimit) return undefined
  return transforms[0]?.relay?.(bytes, start, end)
}

/** Returns what to send in place of the bytes; undefined if the transforms must get a copy of them. */
export function rewrittenBytes(
  transforms: readonly BodyTransform[] | undefined,
  bytes: Buffer,
  start: number,
  end: number,
): ByteSpan | undefined {
  const span = transforms?.length === 1 ? transforms[0]?.rewrite?.(bytes, start, end) : undefined
  if (span === undefined || span.end - span.start <= copyLimit) return span
  return { bytes: copyOf(span.bytes, span.start, span.end), start: 0, end: span.end - span.start }
}

/** Returns the length of the transformed body; undefined if it is not known. */
export const lengthAfter = (transforms: readonly BodyTransform[]): number | undefined =>
  transforms.length === 1 ? transforms[0]?.length : undefined

export const isOver = (transform: BodyTransform): boolean => transform.isOver === true

/** Whether the transform ends a body whose source broke off. */
export const canFail = ({ fail }: BodyTransform): boolean => fail !== undefined
