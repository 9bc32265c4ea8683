import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** A file of cases that any host of the core can run: what it is about, and rows. */
export interface CaseFile<Case> {
  readonly name: string
  readonly about: string
  readonly cases: readonly Case[]
}

/** Every case file of a folder beside this file. */
export function readCaseFiles<Case>(folder: string): CaseFile<Case>[] {
  const path = join(import.meta.dirname, folder)
  return readdirSync(path)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => ({
      name: basename(file, '.json'),
      ...JSON.parse(readFileSync(join(path, file), 'utf8')),
    }))
}
