/**
 * Reads OpenAPI documents. References lead to other parts of the document, or to documents that were listed: nothing
 * is ever fetched.
 */
import { isObject } from '../../../../ground/base/json-object.ts'

export type Fields = Readonly<Record<string, unknown>>

/** Thrown if a part of a document cannot be used. The message names the part. */
export class DocumentProblem extends Error {
  override readonly name = 'DocumentProblem'
}

/** Maximum number of references from one to the next. */
const maxHops = 32

export const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {})
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined

/** A document of version 2.0 (`swagger`), or 3.x (`openapi`). */
export class OpenApiDocument {
  readonly root: Fields
  readonly version: '2.0' | '3.0' | '3.1'

  /** Listed documents by the names that references have. */
  readonly #others: ReadonlyMap<string, unknown>

  /** @throws DocumentProblem if the value is no document of a known version */
  constructor(value: unknown, references: Fields = {}) {
    this.#others = new Map(
      Object.entries(references).map(([name, one]) => [
        bareName(name),
        rebased(one, bareName(name), 0),
      ]),
    )
    if (!isObject(value)) throw new DocumentProblem('the document is not an object')
    this.root = value
    const stated = value.openapi ?? value.swagger
    if (stated === '2.0' || stated === 2) this.version = '2.0'
    else if (typeof stated === 'string' && stated.startsWith('3.0')) this.version = '3.0'
    else if (typeof stated === 'string' && /^3\.[12]/.test(stated)) this.version = '3.1'
    else {
      const found = stated === undefined ? 'no version' : `version ${JSON.stringify(stated)}`
      throw new DocumentProblem(`the document has ${found}; 2.0, 3.0, 3.1 and 3.2 are supported`)
    }
    if (!isObject(value.paths)) throw new DocumentProblem('the document has no paths')
  }

  /** Follows references to the value that they lead to. @throws DocumentProblem */
  resolve(value: unknown): unknown {
    let found = value
    for (let hop = 0; hop < maxHops; hop++) {
      const ref = isObject(found) ? found.$ref : undefined
      if (typeof ref !== 'string') return found
      found = this.at(ref)
    }
    throw new DocumentProblem('references lead to each other')
  }

  /** Returns the value that a reference names. @throws DocumentProblem if it names nothing that is known */
  at(ref: string): unknown {
    const [name = ''] = ref.split('#', 1)
    let found = name === '' ? this.root : this.#others.get(bareName(name))
    if (found === undefined) {
      throw new DocumentProblem(
        `$ref ${JSON.stringify(ref)} leads out of the document, and is not among its references`,
      )
    }
    for (const part of pointerParts(ref)) {
      const holder = found
      const isThere = typeof holder === 'object' && holder !== null && Object.hasOwn(holder, part)
      if (!isThere) throw new DocumentProblem(`$ref ${JSON.stringify(ref)} names nothing`)
      found = (holder as Fields)[part]
    }
    return found
  }

  /** The path of the first server, whose host does not matter; empty if there is none. */
  get basePath(): string {
    if (this.version === '2.0') return rooted(textIn(this.root.basePath) ?? '')
    const [server] = listOf(this.root.servers).map(fieldsOf)
    const variables = fieldsOf(server?.variables)
    const url = (textIn(server?.url) ?? '').replace(/\{([^}]+)\}/g, (_, name: string) =>
      String(fieldsOf(variables[name]).default ?? ''),
    )
    return rooted(url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '').replace(/[?#].*$/, ''))
  }
}

/** References may name a document beside this one with or without `./`. */
const bareName = (name: string): string => name.replace(/^\.\//, '')

/** Maximum depth of a listed document. */
const maxDepth = 128

/** Returns a copy of a listed document in which references to the document itself begin with its name. */
function rebased(value: unknown, name: string, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth > maxDepth) throw new DocumentProblem(`${name} is nested too deeply`)
  if (Array.isArray(value)) return value.map((one) => rebased(one, name, depth + 1))
  const members = Object.entries(value).map(([key, one]) => {
    const isOwn = key === '$ref' && typeof one === 'string' && one.startsWith('#')
    return [key, isOwn ? `${name}${one}` : rebased(one, name, depth + 1)] as const
  })
  return Object.fromEntries(members)
}

/** The parts of the pointer after `#`. @throws DocumentProblem if its escapes are not valid */
export function pointerParts(ref: string): string[] {
  const mark = ref.indexOf('#')
  const pointer = mark < 0 ? '' : ref.slice(mark + 1)
  if (pointer === '') return []
  try {
    return decodeURIComponent(pointer.slice(1))
      .split('/')
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  } catch {
    throw new DocumentProblem(`$ref ${JSON.stringify(ref)} is not a JSON pointer`)
  }
}

/** A base path without a slash at its end. Dot segments in it are refused, like everywhere in paths. */
function rooted(path: string): string {
  const trimmed = path.replace(/\/+$/, '')
  if (trimmed === '') return ''
  const whole = trimmed.startsWith('/') ? trimmed : `/${trimmed}`
  if (/\/\.\.?(\/|$)/.test(whole))
    throw new DocumentProblem('the path of the server has dot segments')
  return encodeURI(whole)
}
