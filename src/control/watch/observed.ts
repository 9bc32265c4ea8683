import type { FieldProblem, Origin, RefusedTarget, ResourceName } from '../../../events/index.ts'
import { canonicalBytes, canonicalJson } from '../../ground/base/canonical.ts'
import { hexDigest } from '../../ground/base/digest.ts'
import { isObject, type JsonObject } from '../../ground/base/json-object.ts'
import type { Outcome } from '../../ground/base/outcome.ts'
import { gatewayGroup } from '../../ground/model/api-names.ts'
import { findKind } from '../api/kinds.ts'
import { defaultNamespace, foreignText, isForeign, isRelated } from '../api/validate.ts'
import { maxEventBytes } from '../log/index.ts'
import type { ManifestObject } from './manifest.ts'
import { type RedactionOptions, redact, type SecretSink } from './redact.ts'
import { keyOf } from './resource-index.ts'
import { type References, withReferences } from './secret-references.ts'
import type { SourceProblem } from './source-problem.ts'

export interface ObserveOptions extends RedactionOptions {
  /** Validates an object. Returns the form to record, or every problem with the path of its field. */
  readonly validate: (object: unknown) => Outcome<unknown, FieldProblem>
  /** Returns problems of a valid object that do not prevent its use. If omitted, they are not reported. */
  readonly examine?: (object: JsonObject) => readonly FieldProblem[]
  /** From where Secrets in files take values. If omitted, they take none. */
  readonly references?: References
  /** Called for each object of a file that is read; `placeOf` finds its fields. */
  readonly onPlaced?: (claim: ObjectClaim, placeOf: ManifestObject['placeOf']) => void
}

/** The definition of one object in a file. */
export interface ObjectClaim {
  readonly key: string
  readonly name: ResourceName
  readonly origin: Origin
  readonly column: number
  readonly content: ClaimContent
}

type ClaimContent =
  | ObservedContent
  /** The file cannot be read now: the object stays as it is in the log. */
  | { readonly state: 'retained' }

export type ObservedContent =
  | {
      readonly state: 'valid'
      readonly object: JsonObject
      readonly version: ContentVersion
      /** Digests of the secret values that were removed. */
      readonly secrets: readonly string[]
    }
  | {
      readonly state: 'refused'
      readonly problems: readonly FieldProblem[]
      readonly targets: readonly RefusedTarget[]
      readonly appliesTo: readonly string[]
      readonly version: ContentVersion
    }

/** Returns the digests of the secret values of some objects. */
export function digestsOf(claims: Iterable<{ readonly content: ClaimContent }>): Set<string> {
  const digests = new Set<string>()
  for (const { content } of claims) {
    if (content.state === 'valid') for (const digest of content.secrets) digests.add(digest)
  }
  return digests
}

/** Whether an object has any of these secret values. */
export function hasSecret(
  { content }: { readonly content: ClaimContent },
  digests: ReadonlySet<string>,
): boolean {
  return content.state === 'valid' && content.secrets.some((digest) => digests.has(digest))
}

/** Digests of the desired part (`spec`) and of the metadata, to compare two versions of an object. */
export interface ContentVersion {
  readonly spec: string
  readonly metadata: string
}

interface Observed {
  readonly claim?: ObjectClaim
  readonly problems: readonly SourceProblem[]
  /** The files from which it takes values. */
  readonly references?: readonly string[]
}

/** Bytes of an event that are reserved for its envelope and the identity of the object. */
const envelopeBytes = 8192
/** Maximum number of recorded problems of one object. Of further problems, only the number is recorded. */
const maxProblems = 50
/** Maximum number of recorded targets, or labels of a target; the API allows 16 targets. */
const maxTargets = 64
/** Maximum number of recorded fields that a policy sets; a policy has far fewer. */
const maxSections = 128
/** Maximum number of characters in a recorded text, which limits the size of the event. */
const maxCharacters = 500

const cut = (text: string) =>
  text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text

const shorten = ({ path, message }: FieldProblem) => ({ path: cut(path), message: cut(message) })

/** Identifies, validates and redacts one object of a file. */
export function observe(written: ManifestObject, file: string, options: ObserveOptions): Observed {
  const identity = identify(written.value, options.validate)
  if (!identity.ok) {
    const [problem] = identity.problems as [IdentityProblem]
    const place = written.placeOf(problem.path)
    const severity = problem.reason === 'invalid' ? 'error' : 'warning'
    return { problems: [{ severity, file, ...place, ...namesOf(written.value), ...problem }] }
  }
  const { name } = identity.value
  const { object, faults, warnings, files } = filled(identity.value.object, file, options)
  const content = contentOf(object, options, [...(written.problems ?? []), ...faults])
  const claim = {
    key: keyOf(name),
    name,
    origin: { file, line: written.place.line },
    column: written.place.column,
    content: keptAsText(content),
  }
  options.onPlaced?.(claim, written.placeOf)
  const isRefused = content.state === 'refused'
  const found = isRefused ? content.problems : (options.examine?.(content.object) ?? [])
  const reported = (severity: 'error' | 'warning', reason: 'invalid' | 'faulty' | 'unresolved') => {
    return (problem: FieldProblem) => ({
      ...{ severity, reason, file },
      ...written.placeOf(problem.path),
      ...name,
      ...problem,
    })
  }
  const problems = [
    ...found.map(reported('error', isRefused ? 'invalid' : 'faulty')),
    ...warnings.map(reported('warning', 'unresolved')),
  ]
  return { claim, problems, references: files }
}

/** Fills in values from elsewhere. Only in the gateway itself is a missing one a fault. */
function filled(written: JsonObject, file: string, { references }: ObserveOptions) {
  if (references === undefined) return { object: written, faults: [], warnings: [], files: [] }
  const { object, problems, files } = withReferences(written, file, references)
  const [faults, warnings] = references.isOfGateway
    ? [problems, withoutEffect(written)]
    : [[], problems]
  return { object, faults, warnings, files }
}

/** Settings that a gateway that reads files does not use. */
function withoutEffect({ kind, spec }: JsonObject): FieldProblem[] {
  if (kind !== 'GatewayParameters' || !isObject(spec) || spec.modelCatalog === undefined) return []
  const message =
    'only proxies that `sluice controller` deploys read this catalog; name its file with --model-catalog'
  return [{ path: 'spec.modelCatalog', message }]
}

/**
 * Keeps the object as text, which takes a quarter of the memory and does not keep the text of the whole file.
 * Only an object that has changed is read again, for its event.
 */
function keptAsText(content: ObservedContent): ObservedContent {
  if (content.state === 'refused') return content
  const { object, ...others } = content
  const text = JSON.stringify(object)
  return {
    ...others,
    get object() {
      return JSON.parse(text) as JsonObject
    },
  }
}

const isShort = (value: unknown): value is string => isName(value) && value.length <= longestName

function notAnObject(value: unknown): string {
  const what = Array.isArray(value) ? 'a list; a List has kind and items' : `a ${typeof value}`
  return `must be an object with apiVersion, kind and metadata, not ${what}`
}

/** Returns kind, namespace and name of an object without a valid identity, as far as they can be read. */
function namesOf(value: unknown): Partial<ResourceName> {
  if (!isObject(value) || !isName(value.kind)) return {}
  const { name, namespace } = isObject(value.metadata) ? value.metadata : {}
  return {
    kind: cut(value.kind),
    ...(isShort(name) && { name, namespace: isShort(namespace) ? namespace : '' }),
  }
}

interface IdentityProblem extends FieldProblem {
  readonly reason: 'invalid' | 'ignored' | 'foreign'
}

/** Longest name in Kubernetes. */
const longestName = 253

/** Finds kind, namespace and name of an object. Adds the default namespace if the object has none. */
function identify(
  value: unknown,
  validate: ObserveOptions['validate'],
): Outcome<{ name: ResourceName; object: JsonObject }, IdentityProblem> {
  const error = (path: string, message: string): Outcome<never, IdentityProblem> => ({
    ok: false,
    problems: [{ reason: 'invalid', path, message }],
  })
  if (!isObject(value)) return error('', notAnObject(value))
  const { apiVersion, kind } = value
  const row = isName(apiVersion) && isName(kind) ? findKind(apiVersion, kind) : undefined
  if (isForeign(value)) {
    const message = foreignText(value)
    const reason = isRelated(value) ? 'ignored' : 'foreign'
    return { ok: false, problems: [{ reason, path: 'kind', message }] }
  }
  if (row === undefined) {
    const checked = validate(value)
    const [problem] = checked.ok ? [] : checked.problems
    return error(problem?.path ?? 'kind', problem?.message ?? 'is not known')
  }
  const metadata = isObject(value.metadata) ? value.metadata : {}
  if (!isName(metadata.name)) return error('metadata.name', 'is required and must be a string')
  const namespace = row.namespaced ? metadata.namespace || defaultNamespace : ''
  if (typeof namespace !== 'string') return error('metadata.namespace', 'must be a string')
  const name = { kind: row.kind, namespace: keyPart(namespace), name: keyPart(metadata.name) }
  const object = row.namespaced ? { ...value, metadata: { ...metadata, namespace } } : value
  return { ok: true, value: { name, object } }
}

/**
 * Escapes a name for keys and events. The schema refuses every name that this changes, but a refused object
 * still needs a key of its own: it may be a policy whose target must fail closed.
 */
function keyPart(name: string): string {
  const escaped = name.toWellFormed().replace(/[^\w.-]/gu, encodeURIComponent)
  return escaped.length <= longestName ? escaped : `${escaped.slice(0, 200)}~${sha256(name)}`
}

/**
 * Returns the content to record for an object with a valid identity: its valid, redacted form, or its
 * problems. `found` contains the problems of its YAML notation.
 */
export function contentOf(
  object: JsonObject,
  options: ObserveOptions,
  found: readonly FieldProblem[] = [],
): ObservedContent {
  try {
    return validContentOf(object, options, found)
  } catch (error) {
    // A bug must not prevent the other objects from being read.
    const message = `cannot be read because of an internal error (${String(error)})`
    return refuse(object, [{ path: '', message }], options)
  }
}

function validContentOf(
  object: JsonObject,
  options: ObserveOptions,
  found: readonly FieldProblem[],
): ObservedContent {
  const checked = options.validate(object)
  if (!checked.ok) {
    const places = new Set(found.map(({ path }) => path))
    const others = checked.problems.filter(({ path }) => !places.has(path))
    return refuse(object, [...found, ...others], options)
  }
  if (found.length > 0) return refuse(object, found, options)
  const secrets: string[] = []
  const keepSecret: SecretSink = (digest, value) => {
    secrets.push(digest)
    options.keepSecret?.(digest, value)
  }
  const redacted = redact(checked.value as JsonObject, { ...options, keepSecret })
  const { metadata, ...desired } = redacted
  const [spec, described] = [measure(desired), measure(metadata)]
  const bytes = spec.bytes + described.bytes
  if (bytes > maxEventBytes - envelopeBytes) return refuse(object, [tooLarge(bytes)], options)
  const version = { spec: spec.digest, metadata: described.digest }
  return { state: 'valid', object: redacted, version, secrets }
}

/** Returns the digest and the size of the canonical JSON of a value. */
function measure(value: unknown): { readonly digest: string; readonly bytes: number } {
  const bytes = canonicalBytes(value)
  return { digest: sha256(bytes), bytes: bytes.length }
}

function refuse(
  object: JsonObject,
  problems: readonly FieldProblem[],
  { digestKey }: ObserveOptions,
): ObservedContent {
  const { metadata, status: _, ...desired } = object
  const hidden = problems.length - maxProblems
  const more = { path: '', message: `and ${hidden} more problems` }
  const targets = [...targetsOf(object), ...parentsOf(object)].slice(0, maxTargets)
  const appliesTo = sectionsOf(object)
  const shown = (hidden > 0 ? [...problems.slice(0, maxProblems), more] : problems).map(shorten)
  // Refused content is not redacted, so its digests must use the secret key.
  const keyed = (value: unknown) =>
    digestKey.digest(`refused ${textOf(value, [shown, targets, appliesTo])}`).slice(0, 16)
  return {
    state: 'refused',
    problems: shown,
    targets,
    appliesTo,
    version: { spec: keyed(desired), metadata: keyed(metadata) },
  }
}

/** Returns the canonical JSON of a value, or of `otherwise` if the value is cyclic or too deeply nested. */
function textOf(value: unknown, otherwise: unknown): string {
  try {
    return canonicalJson(value)
  } catch {
    return canonicalJson(otherwise)
  }
}

function tooLarge(bytes: number): FieldProblem {
  const limit = maxEventBytes - envelopeBytes
  return { path: '', message: `the object has ${bytes} bytes and may have at most ${limit}` }
}

/** Returns the targets of a policy, as far as they can be read from an invalid object. */
function targetsOf({ spec }: JsonObject): RefusedTarget[] {
  if (!isObject(spec)) return []
  const lists = [spec.targetRefs, spec.targetSelectors].filter(Array.isArray)
  return lists.flat().flatMap((target: unknown) => {
    if (!isObject(target) || !isShort(target.kind)) return []
    const { group, kind, name, sectionName, matchLabels } = target
    return [
      {
        kind,
        ...(typeof group === 'string' && { group: cut(group) }),
        ...(isShort(name) && { name }),
        ...(isShort(sectionName) && { sectionName }),
        ...(isLabels(matchLabels) && { matchLabels }),
      },
    ]
  })
}

/** Returns the parents of a route or a ListenerSet, with the defaults of the API. */
function parentsOf({ spec }: JsonObject): RefusedTarget[] {
  if (!isObject(spec)) return []
  const given = Array.isArray(spec.parentRefs) ? spec.parentRefs : [spec.parentRef]
  return given.flatMap((parent: unknown) => {
    if (!isObject(parent) || !isShort(parent.name)) return []
    const { group, kind, namespace, name, sectionName, port } = parent
    return [
      {
        group: typeof group === 'string' ? cut(group) : gatewayGroup,
        kind: isShort(kind) ? kind : 'Gateway',
        ...(isShort(namespace) && { namespace }),
        name,
        ...(isShort(sectionName) && { sectionName }),
        ...(typeof port === 'number' && { port }),
      },
    ]
  })
}

/** Fields of a policy's spec that say where it applies and set nothing. */
const targetFields = new Set(['targetRefs', 'targetSelectors'])

/**
 * Returns names such as `traffic.authorization` for every field that a policy sets. For a section that cannot
 * be read, returns the name of the section, since it is unknown what it protects.
 */
function sectionsOf({ kind, spec }: JsonObject): string[] {
  if (kind !== 'GatewayPolicy' || !isObject(spec)) return []
  const names = Object.entries(spec).flatMap(([section, fields]) => {
    if (targetFields.has(section)) return []
    if (!isObject(fields)) return [section]
    return Object.keys(fields).map((field) => `${section}.${field}`)
  })
  // An empty list means that the policy may set anything.
  return names.length > maxSections ? [] : names.map(cut)
}

/** Whether labels are few and short enough for an event. */
function isLabels(value: unknown): value is Readonly<Record<string, string>> {
  if (!isObject(value)) return false
  const labels = Object.entries(value)
  const isShortLabel = ([name, label]: readonly [string, unknown]) =>
    name.length <= maxCharacters && typeof label === 'string' && label.length <= maxCharacters
  return labels.length <= maxTargets && labels.every(isShortLabel)
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function sha256(content: string | Uint8Array): string {
  return hexDigest('sha256', content).slice(0, 16)
}
