/** Reads the files that the commands about catalogs name. */
import { readFile } from 'node:fs/promises'
import { catalogWith } from '../../../engines/messages/catalog/shipped.ts'
import { UsageError } from '../shared/output.ts'

/** @throws UsageError if the file cannot be read */
export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : path)
  }
}

/** Reads the shipped catalog and those of these files. @throws UsageError if a file cannot be read */
export async function readCatalogs(paths: readonly string[] = []) {
  const texts = paths.map(async (name) => ({ name, text: await readText(name) }))
  return catalogWith(await Promise.all(texts))
}
