/** Reads one manifest, and tells whether it has changed. */
import { statSync } from 'node:fs'
import { hexDigest } from '../../ground/base/digest.ts'
import { readFileBytes } from '../../ground/base/read-whole-file.ts'
import { readReferenced } from './referenced-file.ts'

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

interface ReadBefore {
  readonly stamp: string
  readonly hash: string
  /** The files from which its Secrets take values: a change of one is a change of the manifest. */
  readonly references: readonly string[]
}

/** Reads a file, unless its stamp is the one of `before`. */
export function readFile(file: string, before?: ReadBefore): FileRead {
  const references = before?.references ?? []
  try {
    // The inode of the manifest comes last, for `isReplaced`.
    const stamp = [...references.map(stampIfFound), stampOf(file)].join(' ')
    if (stamp === before?.stamp) return { outcome: 'unchanged' }
    const bytes = readFileBytes(file)
    const hash = [bytes, ...references.map(readText)]
      .map((part) => hexDigest('sha256', part))
      .join()
    if (hash === before?.hash) return { outcome: 'touched', stamp }
    return { outcome: 'read', stamp, hash, content: bytes }
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT'
    return isGone ? { outcome: 'gone' } : { outcome: 'unreadable', error }
  }
}

/** Times, size and inode of a file. */
function stampOf(file: string): string {
  const { mtimeNs, ctimeNs, size, ino } = statSync(file, { bigint: true })
  return `${mtimeNs} ${ctimeNs} ${size} ${ino}`
}

function stampIfFound(file: string): string {
  try {
    return stampOf(file)
  } catch {
    return 'missing'
  }
}

function readText(file: string): string {
  const read = readReferenced(file)
  return 'text' in read ? `text ${read.text}` : read.problem
}
