/** Reads the files that the commands about catalogs name. */
import { readFile } from 'node:fs/promises'
import { catalogWith } from '../../../engines/messages/catalog/shipped.ts'
import { readWholeFile } from '../../../ground/base/read-whole-file.ts'
import { UsageError } from '../shared/output.ts'

/** Reads a file or a pipe. @throws UsageError if it cannot be read */
export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw failure(path, error)
  }
}

/** Reads the shipped catalog and those of these files. @throws UsageError if a file cannot be read */
export const readCatalogs = (paths: readonly string[] = []) =>
  catalogWith(paths.map((name) => ({ name, text: catalogText(name) })))

function catalogText(path: string): string {
  try {
    return readWholeFile(path)
  } catch (error) {
    throw failure(path, error)
  }
}

const failure = (path: string, error: unknown) =>
  new UsageError(`${path}: ${error instanceof Error ? error.message : error}`)
