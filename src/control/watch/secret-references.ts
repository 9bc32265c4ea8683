/**
 * Values of Secrets that a manifest takes from the environment of the gateway, or from files, and values of ConfigMaps
 * that are whole files:
 *
 * ```yaml
 * stringData:
 *   Authorization: Bearer ${env:OPENAI_API_KEY}
 *   password: ${file:keys/password}
 * ```
 *
 * The name is that of an environment variable (POSIX: letters, digits and `_`, no digit first), or a path that
 * begins at the folder of the manifest. `$${env:` stands for the text `${env:`. Only `stringData` of Secrets in
 * files is read so. In `data` of ConfigMaps, which are documents with texts of their own, only an entry that is
 * `${file:PATH}` and nothing else stands for a file.
 */
import { resolve } from 'node:path'
import type { FieldProblem } from '../../../events/index.ts'
import { isObject, type JsonObject } from '../../ground/base/json-object.ts'
import { maxReferencedBytes, readReferenced } from './referenced-file.ts'

export interface References {
  /** The value of an environment variable; undefined if it is not set. */
  readonly variable: (name: string) => string | undefined
  /** Returns the folder at which the paths of a manifest begin. If omitted, files are not read. */
  readonly folderOf?: ((manifest: string) => string) | undefined
  /** Whether the gateway itself reads them: elsewhere, a missing value is a warning. */
  readonly isOfGateway: boolean
}

interface Filled {
  readonly object: JsonObject
  readonly problems: readonly FieldProblem[]
  /** The files that were read, or are missing. */
  readonly files: readonly string[]
}

/** Puts values in the place of references of a Secret or ConfigMap. Returns other objects as they are. */
export function withReferences(object: JsonObject, manifest: string, source: References): Filled {
  const { apiVersion, kind } = object
  const place = apiVersion === 'v1' && typeof kind === 'string' ? places.get(kind) : undefined
  const values = place && object[place.member]
  if (place === undefined || !isObject(values)) return { object, problems: [], files: [] }
  const { member, mayRefer } = place
  const reader = new ReferenceReader(manifest, source)
  const entries = Object.entries(values).map(([entry, value]) => {
    if (typeof value !== 'string' || !mayRefer.test(value)) return [entry, value] as const
    return [entry, reader.filled(value, `${member}${JSON.stringify([entry])}`)] as const
  })
  const { problems, files } = reader
  return { object: { ...object, [member]: Object.fromEntries(entries) }, problems, files }
}

/** Where objects of a kind have references, and which values may be some. */
const places: ReadonlyMap<string, { readonly member: string; readonly mayRefer: RegExp }> = new Map(
  [
    ['Secret', { member: 'stringData', mayRefer: /\$\{(?:env|file):/ }],
    ['ConfigMap', { member: 'data', mayRefer: /^\$\{file:[^}]*\}$/ }],
  ],
)
const reference = /\$(\$?)\{(env|file):([^}]*)\}?/g
const variable = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Reads the references of one object. */
class ReferenceReader {
  readonly problems: FieldProblem[] = []
  readonly files: string[] = []
  readonly #manifest: string
  readonly #source: References
  /** Bytes that further files of this object may have. */
  #left = maxReferencedBytes

  constructor(manifest: string, source: References) {
    this.#manifest = manifest
    this.#source = source
  }

  filled(text: string, path: string): string {
    return text.replace(
      reference,
      (written, isText: string, kind: 'env' | 'file', name: string) => {
        if (isText !== '') return written.slice(1)
        const found = kind === 'env' ? this.#variable(written, name) : this.#file(written, name)
        if ('value' in found) return found.value
        this.problems.push({ path, message: found.message })
        return written
      },
    )
  }

  #variable(written: string, name: string): Found {
    if (!written.endsWith('}') || !variable.test(name)) {
      return { message: `expected \${env:NAME} with the name of an environment variable` }
    }
    const value = this.#source.variable(name)
    if (value === undefined) return { message: `environment variable ${name} is not set` }
    return value === '' ? { message: `environment variable ${name} is empty` } : { value }
  }

  #file(written: string, name: string): Found {
    if (!written.endsWith('}') || name.trim() === '' || name.includes('\0')) {
      return { message: `expected \${file:PATH} with the path of a file` }
    }
    const { folderOf } = this.#source
    if (folderOf === undefined) return { message: `file ${name} is not read here` }
    const path = resolve(folderOf(this.#manifest), name)
    this.files.push(path)
    const read = readReferenced(path)
    if ('problem' in read) return { message: `file ${path} ${read.problem}` }
    this.#left -= Buffer.byteLength(read.text)
    if (this.#left >= 0) return { value: read.text }
    return {
      message: `the files of an object may have at most ${maxReferencedBytes} bytes together`,
    }
  }
}

type Found = { readonly value: string } | { readonly message: string }
