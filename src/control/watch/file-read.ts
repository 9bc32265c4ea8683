/** Reads one manifest, and tells whether it has changed. */
import { readFileSync, statSync } from 'node:fs'
import { hexDigest } from '../../ground/base/digest.ts'

/** The result of reading one manifest. */
type FileRead =
  | { readonly outcome: 'unchanged' | 'gone' }
  /** The stamp has changed, the bytes have not. */
  | { readonly outcome: 'touched'; readonly stamp: string }
  | { readonly outcome: 'unreadable'; readonly error: unknown }
  | {
      readonly outcome: 'read'
      readonly stamp: string
      readonly hash: string
      readonly content: Uint8Array
    }

/** Whether two stamps of a path are of different files, so that the later one was put in place of the other. */
export const isReplaced = (before: string, after: string): boolean =>
  before !== '' && before.split(' ').at(-1) !== after.split(' ').at(-1)

/** Reads a file, unless its stamp is the one of `before`. */
export function readFile(
  file: string,
  before?: { readonly stamp: string; readonly hash: string },
): FileRead {
  try {
    const { mtimeNs, ctimeNs, size, ino } = statSync(file, { bigint: true })
    const stamp = `${mtimeNs} ${ctimeNs} ${size} ${ino}`
    if (stamp === before?.stamp) return { outcome: 'unchanged' }
    const bytes = readFileSync(file)
    const hash = hexDigest('sha256', bytes)
    if (hash === before?.hash) return { outcome: 'touched', stamp }
    return { outcome: 'read', stamp, hash, content: bytes }
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT'
    return isGone ? { outcome: 'gone' } : { outcome: 'unreadable', error }
  }
}
