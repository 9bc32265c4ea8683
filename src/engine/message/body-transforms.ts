/** What a body asks of its transforms. */
import type { BodyTransform, OmittedBytes } from '../../exchange/exchange.ts'
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

export const isOver = (transform: BodyTransform): boolean => transform.isOver === true

/** Whether the transform ends a body whose source broke off. */
export const canFail = ({ fail }: BodyTransform): boolean => fail !== undefined
