/** The secret segment in the path of the webhook. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Reads the file `token` of a folder, which may change. Empty if there is none.
 * @throws if it cannot be read
 */
export async function readTokenIn(folder: string): Promise<string> {
  try {
    return (await readFile(join(folder, 'token'), 'utf8')).trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}
