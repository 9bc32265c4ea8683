import { createHash } from 'node:crypto'
import type { FieldProblem, Origin, RefusedTarget, ResourceName } from '../../events/index.ts'
import { findKind } from '../api/kinds.ts'
import { gatewayGroup } from '../api/names.ts'
import { defaultNamespace, isForeign } from '../api/validate.ts'
import { canonicalJson } from '../base/canonical.ts'
import { isObject, type JsonObject } from '../base/json-object.ts'
import type { Outcome } from '../base/outcome.ts'
import { maxEventBytes } from '../log/index.ts'
import type { ManifestObject } from './manifest.ts'
import { type RedactionOptions, redact, type SecretSink } from './redact.ts'
import { keyOf } from './resource-index.ts'
import type { SourceProblem } from './source-problem.ts'

/** Checks an object and gives the form to be recorded, or every problem with the field's path. */
export type Validate = (object: unknown) => Outcome<unknown, FieldProblem>

/** What is wrong with an object that is taken all the same; its status tells what becomes of it. */
export type Examine = (object: JsonObject) => readonly FieldProblem[]

export interface ObserveOptions extends RedactionOptions {
  readonly validate: Validate
  /** Absent: nothing is told but why objects are refused. */
  readonly examine?: Examine
}

/** What a file says about one object. */
export interface Claim {
  readonly key: string
  readonly name: ResourceName
  readonly origin: Origin
  readonly column: number
  readonly content: ClaimContent
}

type ClaimContent =
  | ObservedContent
  /** The file cannot be read at present: whatever the log has of the object stays. */
  | { readonly state: 'retained' }

export type ObservedContent =
  | {
      readonly state: 'valid'
      readonly object: JsonObject
      readonly version: ContentVersion
      /** Digests of the secret values that were taken out. */
      readonly secrets: readonly string[]
    }
  | {
      readonly state: 'refused'
      readonly problems: readonly FieldProblem[]
      readonly targets: readonly RefusedTarget[]
      readonly appliesTo: readonly string[]
      readonly version: ContentVersion
    }

/** Digests by which two contents are compared: of the desired part, and of the metadata. */
export interface ContentVersion {
  readonly spec: string
  readonly metadata: string
}

interface Observed {
  readonly claim?: Claim
  readonly problems: readonly SourceProblem[]
}

/** Room in an event for the envelope and the identity beside the object. */
const envelopeBytes = 8192
/** Problems of one object beyond this many are counted only. */
const shownProblems = 50
/** The interface allows 16. */
const shownTargets = 64
/** A policy has far fewer fields. */
const shownSections = 128
/** An event must fit whatever nonsense the refused object holds. */
const shownCharacters = 500

const cut = (text: string) =>
  text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text

const shorten = ({ path, message }: FieldProblem) => ({ path: cut(path), message: cut(message) })

/** Identifies, validates and redacts one object of a file. */
export function observe(written: ManifestObject, file: string, options: ObserveOptions): Observed {
  const identity = identify(written.value, options.validate)
  if (!identity.ok) {
    const [problem] = identity.problems as [IdentityProblem]
    const place = written.placeOf(problem.path)
    const isIgnored = problem.reason === 'ignored'
    const named = isIgnored ? {} : namesOf(written.value)
    const severity = isIgnored ? 'warning' : 'error'
    return { problems: [{ severity, file, ...place, ...named, ...problem }] }
  }
  const { name, object } = identity.value
  const content = contentOf(object, options, written.problems)
  const claim = {
    key: keyOf(name),
    name,
    origin: { file, line: written.place.line },
    column: written.place.column,
    content,
  }
  const isRefused = content.state === 'refused'
  const found = isRefused ? content.problems : (options.examine?.(content.object) ?? [])
  const problems = found.map((problem) => ({
    severity: 'error' as const,
    reason: isRefused ? ('invalid' as const) : ('faulty' as const),
    file,
    ...written.placeOf(problem.path),
    ...name,
    ...problem,
  }))
  return { claim, problems }
}

const isShort = (value: unknown): value is string => isName(value) && value.length <= longestName

function noObject(value: unknown): string {
  const what = Array.isArray(value) ? 'a list; a List has kind and items' : `a ${typeof value}`
  return `must be an object with apiVersion, kind and metadata, not ${what}`
}

/** What an object without an identity says of itself all the same. */
function namesOf(value: unknown): Partial<ResourceName> {
  if (!isObject(value) || !isName(value.kind)) return {}
  const { name, namespace } = isObject(value.metadata) ? value.metadata : {}
  return {
    kind: cut(value.kind),
    ...(isShort(name) && { name, namespace: isShort(namespace) ? namespace : '' }),
  }
}

interface IdentityProblem extends FieldProblem {
  readonly reason: 'invalid' | 'ignored'
}

/** Longest name that Kubernetes has for anything; a longer one cannot be a subject. */
const longestName = 253

/** Kind, namespace and name, with the default namespace put in where one is due. */
function identify(
  value: unknown,
  validate: Validate,
): Outcome<{ name: ResourceName; object: JsonObject }, IdentityProblem> {
  const error = (path: string, message: string): Outcome<never, IdentityProblem> => ({
    ok: false,
    problems: [{ reason: 'invalid', path, message }],
  })
  if (!isObject(value)) return error('', noObject(value))
  const { apiVersion, kind } = value
  const row = isName(apiVersion) && isName(kind) ? findKind(apiVersion, kind) : undefined
  if (isForeign(value)) {
    const message = `${apiVersion} ${kind} is not read and has no effect`
    return { ok: false, problems: [{ reason: 'ignored', path: 'kind', message }] }
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
 * A name as it stands in keys and events. The schema refuses names that this changes, but the refused
 * object must still be told apart from others: it may be a policy that has to close its target.
 */
function keyPart(name: string): string {
  const escaped = name.toWellFormed().replace(/[^\w.-]/gu, encodeURIComponent)
  return escaped.length <= longestName ? escaped : `${escaped.slice(0, 200)}~${sha256(name)}`
}

/**
 * What is recorded of an object whose identity is known: its valid, redacted form, or its faults.
 * `found`: faults of how it was written.
 */
export function contentOf(
  object: JsonObject,
  options: ObserveOptions,
  found: readonly FieldProblem[] = [],
): ObservedContent {
  try {
    return validContentOf(object, options, found)
  } catch (error) {
    // A defect of ours must not keep the other objects from being read.
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
  const text = canonicalJson(desired)
  const metadataText = canonicalJson(metadata)
  const bytes = Buffer.byteLength(text) + Buffer.byteLength(metadataText)
  if (bytes > maxEventBytes - envelopeBytes) return refuse(object, [tooLarge(bytes)], options)
  const version = { spec: sha256(text), metadata: sha256(metadataText) }
  return { state: 'valid', object: redacted, version, secrets }
}

function refuse(
  object: JsonObject,
  problems: readonly FieldProblem[],
  { digestKey }: ObserveOptions,
): ObservedContent {
  const { metadata, status: _, ...desired } = object
  const hidden = problems.length - shownProblems
  const more = { path: '', message: `and ${hidden} more problems` }
  const targets = [...targetsOf(object), ...parentsOf(object)].slice(0, shownTargets)
  const appliesTo = sectionsOf(object)
  const shown = (hidden > 0 ? [...problems.slice(0, shownProblems), more] : problems).map(shorten)
  // Refused content is not redacted, so that its digests need the key.
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

/** Objects that contain themselves, or are nested without end, have no text. */
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

/** The targets of a policy, as far as an invalid object tells them. */
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

/** The parents of a route or a ListenerSet, with the defaults that the API server would fill in. */
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

/** Fields of a policy's spec that set nothing. */
const targetFields = new Set(['targetRefs', 'targetSelectors'])

/**
 * `traffic.authorization` for every field that a policy sets. A section that cannot be read, or whose
 * name is not known, stands for itself: nobody can say what it was to protect.
 */
function sectionsOf({ kind, spec }: JsonObject): string[] {
  if (kind !== 'GatewayPolicy' || !isObject(spec)) return []
  const names = Object.entries(spec).flatMap(([section, fields]) => {
    if (targetFields.has(section)) return []
    if (!isObject(fields)) return [section]
    return Object.keys(fields).map((field) => `${section}.${field}`)
  })
  // None means that it is not known what the policy sets.
  return names.length > shownSections ? [] : names.map(cut)
}

/** No object has more labels than an event can hold, nor longer ones. */
function isLabels(value: unknown): value is Readonly<Record<string, string>> {
  if (!isObject(value)) return false
  const labels = Object.entries(value)
  const isShortLabel = ([name, label]: readonly [string, unknown]) =>
    name.length <= shownCharacters && typeof label === 'string' && label.length <= shownCharacters
  return labels.length <= shownTargets && labels.every(isShortLabel)
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
