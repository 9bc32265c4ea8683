/** Reads a file from which a Secret takes a value. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { reasonOf } from './file-tree.ts'

/** The maximum size of such a file, and of all files of one Secret: that of a Secret in Kubernetes. */
export const maxReferencedBytes = 1_048_576

type Referenced = { readonly text: string } | { readonly problem: string }

/** Returns the text of a file without the line break at its end, or what is wrong with the file. */
export function readReferenced(path: string): Referenced {
  try {
    // Without blocking, because the path may be that of a pipe.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      return readOpen(file)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    return { problem: `cannot be read: ${reasonOf(error)}` }
  }
}

function readOpen(file: number): Referenced {
  const found = fstatSync(file)
  if (!found.isFile()) return { problem: 'is not a regular file' }
  if (found.size > maxReferencedBytes) return tooLarge
  const bytes = Buffer.allocUnsafe(maxReferencedBytes + 1)
  let length = 0
  for (let read = -1; read !== 0 && length < bytes.length; length += read) {
    read = readSync(file, bytes, length, bytes.length - length, null)
  }
  if (length > maxReferencedBytes) return tooLarge
  try {
    const text = utf8.decode(bytes.subarray(0, length)).replace(/\r?\n$/, '')
    return text === '' ? { problem: 'is empty' } : { text }
  } catch {
    return { problem: 'is not text in UTF-8' }
  }
}

const tooLarge = { problem: `has more than ${maxReferencedBytes} bytes` }
const utf8 = new TextDecoder('utf-8', { fatal: true })
