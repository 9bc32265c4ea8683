/** Collects the objects of a conversion, and what could not be converted. */
import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { validateObject } from '../../control/api/validate.ts'
import { isObject } from '../../ground/base/json-object.ts'
import { ownGroup } from '../../ground/model/api-names.ts'
import { type FindingKind, isProtection, type SourceDocument, SourceField } from './field.ts'

/** One line of the report. It never has a value of the source that could be secret. */
export interface ImportFinding {
  readonly kind: FindingKind
  readonly file: string
  readonly line: number
  readonly column: number
  /** The object of the source, such as `Ingress default/shop`. Empty for configuration files. */
  readonly object: string
  readonly field: string
  readonly reason: string
}

export type Fields = Readonly<Record<string, unknown>>

/** An object of the result. */
export interface ImportedManifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly [field: string]: unknown
  }
  readonly [field: string]: unknown
}

interface ConversionOptions {
  /** Namespace of the created objects; if not set, the manifests name none. */
  readonly namespace?: string
  /** Port of the created Gateway. */
  readonly port: number
}

const maxFindings = 5_000

/** Maximum number of targets of a GatewayPolicy. */
const maxTargets = 16

export class Conversion {
  /** Namespace of the objects that are created next. */
  namespace: string | undefined
  readonly port: number
  readonly findings: ImportFinding[] = []
  /** Findings that are counted, but not listed. */
  omitted = 0
  /** Number of findings of each kind. */
  readonly counts = new Map<FindingKind, number>()
  /** The field `frontend.forwarded` that sets the same headers about the client as the source. */
  forwarded: Fields | undefined
  readonly #roots: { readonly root: SourceField; readonly prefix: string }[] = []
  readonly #objects = new Map<
    string,
    { readonly object: ImportedManifest; readonly origin: SourceField }
  >()
  readonly #labels = new Map<SourceDocument, string>()
  readonly #names = new Map<string, string>()
  readonly #taken = new Set<string>()
  /** Names of Secrets by namespace and label, then by content. */
  readonly #secrets = new Map<string, Map<string, string>>()
  readonly #reported = new Map<SourceDocument, Set<string>>()

  constructor({ namespace, port }: ConversionOptions) {
    this.namespace = namespace
    this.port = port
  }

  /** Starts to read a document. What the reader leaves unread is reported by `finish`. */
  open(document: SourceDocument, label = ''): SourceField {
    const root = SourceField.root(document, (...finding) => this.report(...finding))
    this.#labels.set(document, label)
    this.#roots.push({ root, prefix: label.split(' ')[0] ?? '' })
    return root
  }

  /** Adds a line to the report, once. */
  report(kind: FindingKind, field: SourceField, reason: string, path = field.path): void {
    const key = `${kind} ${path} ${reason}`
    const reported = this.#reported.get(field.document) ?? new Set()
    if (reported.has(key)) return
    this.#reported.set(field.document, reported.add(key))
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
    if (this.findings.length >= maxFindings) {
      this.omitted++
      return
    }
    const { document } = field
    const { line, column } = document.placeOf(path)
    const object = this.#labels.get(document) ?? ''
    this.findings.push({ kind, file: document.file, line, column, object, field: path, reason })
  }

  /** Turns any text into the name of an object, unique for each kind and text. */
  nameOf(kind: string, text: string): string {
    const key = `${kind}\n${text}`
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const plain = text
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '')
    const short = plain.slice(0, 50).replace(/-+$/, '')
    const isExact = short !== '' && short === plain && !this.#taken.has(`${kind}\n${short}`)
    const digest = hash('sha256', text).slice(0, 6)
    const name = isExact ? short : [short || 'object', digest].join('-')
    this.#names.set(key, name)
    this.#taken.add(`${kind}\n${name}`)
    return name
  }

  /**
   * Turns a text into the name of a new object. The text may be that of another object: routes may have no
   * name of their own, or share one.
   */
  newName(kind: string, text: string, { path }: SourceField): string {
    let label = text
    for (let n = 1; this.#names.has(`${kind}\n${label}`); n++) {
      label = n === 1 ? `${text} ${path}` : `${text} ${path} ${n}`
    }
    return this.nameOf(kind, label)
  }

  /**
   * Returns the name of a Secret with this content. Secrets with one label and different contents get different
   * names, so that no credential takes the place of another; those with equal contents share one Secret.
   */
  secretName(label: string, content: Readonly<Record<string, string>>): string {
    const place = `${this.namespace ?? ''}\n${label}`
    const byContent = this.#secrets.get(place) ?? new Map<string, string>()
    this.#secrets.set(place, byContent)
    const key = JSON.stringify(content)
    let name = byContent.get(key)
    for (let n = byContent.size + 1; name === undefined; n++) {
      const text = n === 1 ? label : `${label}-${n}`
      if (n === 1 || !this.#names.has(`Secret\n${text}`)) name = this.nameOf('Secret', text)
    }
    byContent.set(key, name)
    return name
  }

  /** Adds an object. It replaces one with the same kind and name, which is reported if that had other content. */
  add(object: ImportedManifest, origin: SourceField): void {
    const { kind, apiVersion, metadata } = object
    const group = apiVersion.split('/')[0]
    const key = `${group}\n${kind}\n${metadata.namespace ?? ''}\n${metadata.name}`
    const before = this.#objects.get(key)
    if (before !== undefined && !isDeepStrictEqual(before.object, object)) {
      const reason = `${kind} ${metadata.name} is replaced by another object with this name`
      this.report('protection', before.origin, reason)
    }
    this.#objects.set(key, { object, origin })
  }

  /** The decoded entries of a Secret that was added before; undefined if there is none. */
  secretEntries(name: string, namespace = ''): Readonly<Record<string, string>> | undefined {
    const secret = this.#objects.get(`v1\nSecret\n${namespace}\n${name}`)?.object
    if (secret === undefined) return undefined
    const data = Object.entries((secret.data ?? {}) as Record<string, unknown>)
    const decoded = data.map(([key, value]) => [
      key,
      Buffer.from(String(value), 'base64').toString(),
    ])
    const texts = (secret.stringData ?? {}) as Readonly<Record<string, string>>
    return { ...Object.fromEntries(decoded), ...texts }
  }

  /** Adds an object in the target namespace. `content` has its fields, and may also have `annotations`. */
  create(
    apiVersion: string,
    kind: string,
    name: string,
    { annotations = {}, ...content }: Fields & { readonly annotations?: Fields },
    origin: SourceField,
  ): void {
    const metadata = {
      name,
      ...(this.namespace !== undefined && { namespace: this.namespace }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    }
    this.add({ apiVersion, kind, metadata, ...content }, origin)
  }

  /**
   * Adds a GatewayPolicy whose name is made of `label`, or several if it has too many targets. None is added if
   * it would set nothing.
   */
  policy(label: string, targets: readonly Fields[], sections: Fields, origin: SourceField): void {
    const name = this.nameOf('GatewayPolicy', label)
    const set = Object.entries(sections).filter(
      ([, section]) =>
        section !== undefined &&
        Object.values(section as Fields).some((field) => field !== undefined),
    )
    if (set.length === 0) return
    const written = compact(Object.fromEntries(set))
    for (let from = 0; from < targets.length; from += maxTargets) {
      const part = from === 0 ? name : this.nameOf('GatewayPolicy', `${name}-from-${from + 1}`)
      const spec = { targetRefs: targets.slice(from, from + maxTargets), ...written }
      this.create(`${ownGroup}/v1alpha1`, 'GatewayPolicy', part, { spec }, origin)
    }
  }

  /** Reports what the readers left, and returns the objects that conform to their schemas. */
  finish(): ImportedManifest[] {
    for (const { root, prefix } of this.#roots) {
      for (const field of root.unread()) {
        const names = fieldNames(field.value)
        const isGuard = isProtection(`${prefix}.${field.path}`) || names.some(isProtection)
        const kind = isGuard ? 'protection' : 'lost'
        this.report(kind, field, 'has no counterpart, or is unknown')
      }
    }
    const objects: ImportedManifest[] = []
    for (const { object, origin } of this.#objects.values()) {
      const outcome = validateObject(object)
      if (outcome.ok) objects.push(object)
      else this.#reject(object, origin, outcome.problems)
    }
    return objects
  }

  #reject(
    { kind, metadata }: ImportedManifest,
    origin: SourceField,
    problems: readonly { readonly path: string; readonly message: string }[],
  ): void {
    for (const { path, message } of problems.slice(0, 5)) {
      const isGuard = kind === 'GatewayPolicy' || kind === 'GatewayBackend'
      const loss = kind.endsWith('Route') ? 'route' : 'lost'
      const reason = `${kind} ${metadata.name} is left out, because it would be invalid: ${path}: ${message}`
      this.report(isGuard ? 'protection' : loss, origin, reason)
    }
  }
}

/** Returns the names of all fields of a value, at every level. */
function fieldNames(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(fieldNames)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, field]) => [name, ...fieldNames(field)])
}

/** A copy without the fields that are undefined, at every level. */
export function compact<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map((item) => compact(item)) as Value
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, field]) => field !== undefined)
  return Object.fromEntries(entries.map(([name, field]) => [name, compact(field)])) as Value
}

/** The list or object; undefined if it is empty. */
export function filled<Value extends object>(value: Value): Value | undefined {
  return Object.keys(value).length > 0 ? value : undefined
}
