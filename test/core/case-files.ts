import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** A file of cases that any host of the core can run. */
export interface CaseFile<Case> {
  readonly name: string
  readonly about: string
  readonly cases: readonly Case[]
}

/** Every case file of a folder in test/core. */
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

/** The text of a case: `text`, `hex` for invalid UTF-8 or `units` of UTF-16, `repeat` times. */
export interface CaseText {
  readonly text?: string
  readonly hex?: string
  readonly units?: readonly number[]
  readonly repeat?: number
}

/** The bytes of a case; lone surrogates become U+FFFD. */
export function bytesOfCase({ text = '', hex, units, repeat = 1 }: CaseText): Buffer {
  const string = units === undefined ? text : String.fromCharCode(...units)
  const once = hex === undefined ? Buffer.from(string) : Buffer.from(hex, 'hex')
  return Buffer.alloc(once.length * repeat, once)
}

/** The JavaScript string of a case, if the case has one. */
export function stringOfCase({ text, units, repeat = 1 }: CaseText): string | undefined {
  return (units === undefined ? text : String.fromCharCode(...units))?.repeat(repeat)
}
