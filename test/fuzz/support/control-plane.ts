/** The way of an object from its source to a proxy, without sockets and files. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { type AnyCloudEvent, type ResourceEvent, upcast } from '../../../events/index.ts'
import { Fold } from '../../../src/control/actors/fold.ts'
import { createGraph } from '../../../src/control/desired/derivations.ts'
import { apiBinding, builtInObjects, regexProblem } from '../../../src/control/plane/api-binding.ts'
import { deletedEvent, differences } from '../../../src/control/watch/difference.ts'
import { DigestKey } from '../../../src/control/watch/digest-key.ts'
import { parseManifest } from '../../../src/control/watch/manifest.ts'
import { type ObjectClaim, observe } from '../../../src/control/watch/observed.ts'
import { ResourceIndex } from '../../../src/control/watch/resource-index.ts'
import { decodeDelta } from '../../../src/control/wire/decode.ts'
import { encodeDelta } from '../../../src/control/wire/encode.ts'
import { canonicalJson } from '../../../src/ground/base/canonical.ts'
import { objectKey } from '../../../src/ground/model/names.ts'

const root = join(import.meta.dirname, '../../..')

/** Manifests of the examples and of the golden tests. */
export const manifests: readonly string[] = globSync(
  ['examples/**/*.yaml', 'test/flow/*/in*.yaml', 'test/run/**/*.yaml'],
  { cwd: root },
)
  .sort()
  .map((file) => readFileSync(join(root, file), 'utf8'))

export type Fields = Record<string, unknown>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Every object of the manifests. */
export const realObjects: readonly Fields[] = manifests.flatMap((text) =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as unknown)
    .filter(isObject),
)

const options = { ...apiBinding, digestKey: new DigestKey(new Uint8Array(32)) }
const context = {
  source: '/sluice/files',
  time: '2026-01-01T00:00:00.000Z',
  epoch: 0,
}

/** One control plane for many inputs: what an input adds is taken away again. */
export class ControlPlane {
  readonly #fold = new Fold(createGraph({ checkRegex: regexProblem }))
  readonly #index = new ResourceIndex(context.source)
  readonly #emptyState: string
  #position = 0

  constructor() {
    for (const object of builtInObjects) this.#put(claimsOf([object], 'built-in'))
    this.#emptyState = this.#state()
  }

  /** Takes a manifest as a file source does. A file that is no YAML has no objects. */
  checkManifest(content: Uint8Array): void {
    const parsed = parseManifest(content, 'a.yaml')
    if (!parsed.ok) return
    const observed = parsed.value.map((written) => observe(written, 'a.yaml', options))
    this.#check(observed.flatMap(({ claim }) => claim ?? []))
  }

  checkObjects(objects: readonly unknown[]): void {
    this.#check(claimsOf(objects, 'a.yaml'))
  }

  #check(claims: readonly ObjectClaim[]): void {
    const own = claims.filter(({ key }) => this.#index.get(key) === undefined)
    const firsts = new Map(own.map((claim) => [claim.key, claim]))
    this.#put([...firsts.values()])
    this.#assertPublishable()
    const gone = [...this.#index.entries()].filter(({ origin }) => origin?.file === 'a.yaml')
    this.#apply(gone.map((entry) => deletedEvent(entry, 'watch', context)))
    this.#fold.takeChange()
    assert.equal(this.#state(), this.#emptyState, 'something stays of objects that are deleted')
  }

  #put(claims: readonly ObjectClaim[]): void {
    this.#apply(differences(this.#index, { claims, gone: [], cause: 'watch' }, context))
  }

  #apply(events: readonly ResourceEvent[]): void {
    for (const event of events) {
      // As it is read from a log.
      const read = upcast(JSON.parse(JSON.stringify(event)) as AnyCloudEvent)
      assert.equal(canonicalJson(read), canonicalJson(event))
      this.#index.apply(event)
      this.#fold.apply({ position: ++this.#position, event: read })
    }
  }

  /** What was derived can be written to statuses and sent to proxies. */
  #assertPublishable(): void {
    const { delta, statuses } = this.#fold.takeChange()
    JSON.parse(JSON.stringify(statuses))
    const received = decodeDelta(encodeDelta(delta))
    assert.deepEqual(received.unreadable, [])
    assert.equal(canonicalJson(received.upserted), canonicalJson(delta.upserted))
  }

  #state(): string {
    const objects = [...this.#fold.graph.objects()].map(({ ref }) => objectKey(ref))
    return canonicalJson([objects.sort(), this.#fold.digests()])
  }
}

function claimsOf(objects: readonly unknown[], file: string): ObjectClaim[] {
  const place = { line: 1, column: 1 }
  return objects.flatMap((value) => {
    const written = { value, place, placeOf: () => place }
    return observe(written, file, options).claim ?? []
  })
}
