import { readFileSync, statSync } from 'node:fs'

/**
 * Returns the text of a file. Pipes and devices are refused, because a pipe blocks the process until it is written,
 * can be read only once, and a device may have no end.
 * @throws if it is no such file, or cannot be read
 */
export function readWholeFile(path: string): string {
  if (!statSync(path).isFile()) throw new Error('not a regular file')
  return readFileSync(path, 'utf8')
}
