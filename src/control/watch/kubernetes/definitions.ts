/** Watches the CRDs of a cluster: which kinds it has, and which versions of the Gateway API. */
import type { KubeClient, KubeObject } from '../../kube/index.ts'
import { KindWatch } from './kind-watch.ts'
import { definitionKind } from './kinds.ts'

interface DefinitionsOptions {
  readonly client: KubeClient
  /** Called when a CRD was created, changed or deleted. `name` is `plural.group`. */
  onDefinition(name: string): void
  /** Called with the bundle versions of the Gateway API's CRDs, sorted and without duplicates. */
  onVersions(versions: readonly string[]): void
}

const versionAnnotation = 'gateway.networking.k8s.io/bundle-version'

export class Definitions {
  readonly #options: DefinitionsOptions
  readonly #watch: KindWatch
  #versions = new Map<string, string>()
  #isListed = false

  constructor(options: DefinitionsOptions) {
    this.#options = options
    this.#watch = new KindWatch(options.client, definitionKind, {
      listing: () => this.#beginListing(),
      changed: (_kind, _version, type, object) => {
        this.#note(this.#versions, object, type === 'delete')
        options.onDefinition(object.metadata.name)
        this.#report()
      },
      state: () => undefined,
    })
  }

  start(): void {
    this.#watch.start()
  }

  stop(): Promise<void> {
    return this.#watch.stop()
  }

  #beginListing() {
    const found = new Map<string, string>()
    return {
      page: (objects: readonly KubeObject[]) => {
        for (const object of objects) {
          this.#note(found, object, false)
          this.#options.onDefinition(object.metadata.name)
        }
      },
      finish: () => {
        this.#versions = found
        this.#isListed = true
        this.#report()
      },
    }
  }

  #note(versions: Map<string, string>, { metadata }: KubeObject, isGone: boolean): void {
    if (!metadata.name.endsWith('.gateway.networking.k8s.io')) return
    if (isGone) versions.delete(metadata.name)
    else versions.set(metadata.name, metadata.annotations?.[versionAnnotation] ?? '')
  }

  #report(): void {
    if (this.#isListed) this.#options.onVersions([...new Set(this.#versions.values())].sort())
  }
}
