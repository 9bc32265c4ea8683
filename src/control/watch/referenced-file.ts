/** Reads a file from which a Secret takes a value. */
import { readFileBytes } from '../../ground/base/read-whole-file.ts'
import { reasonOf } from './file-tree.ts'

/** The maximum size of such a file, and of all files of one Secret: that of a Secret in Kubernetes. */
export const maxReferencedBytes = 1_048_576

type Referenced = { readonly text: string } | { readonly problem: string }

/** Returns the text of a file without the line break at its end, or what is wrong with the file. */
export function readReferenced(path: string): Referenced {
  let bytes: Uint8Array
  try {
    bytes = readFileBytes(path, maxReferencedBytes)
  } catch (error) {
    return { problem: `cannot be read: ${reasonOf(error)}` }
  }
  try {
    const text = utf8.decode(bytes).replace(/\r?\n$/, '')
    return text === '' ? { problem: 'is empty' } : { text }
  } catch {
    return { problem: 'is not text in UTF-8' }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })
