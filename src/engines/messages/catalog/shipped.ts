/** The catalogs of models with prices: the one that ships with the release, and those of the user. */
import { readFileSync } from 'node:fs'
import { hexDigest } from '../../../ground/base/digest.ts'
import { type CatalogSource, ModelCatalog, shippedFamilies } from './catalog.ts'
import type { ModelEntry } from './facts.ts'
import { readCatalog } from './read-catalog.ts'

/** A catalog of the user, in JSON. */
export interface CatalogText {
  /** Name in messages, such as the path of the file. */
  readonly name: string
  readonly text: string
}

/** The form of the shipped models, which a test has checked, so that no process needs to. */
interface ShippedModels {
  readonly providers: Readonly<
    Record<string, { readonly models: Readonly<Record<string, ModelEntry>> }>
  >
}

/** The models that ship with the release. They are read from their file once something asks for them. */
class ShippedSource implements CatalogSource {
  readonly families = []
  #read: Pick<CatalogSource, 'providers' | 'digest'> | undefined

  /** `npm run build` copies the file beside the bundle. */
  #content() {
    if (this.#read === undefined) {
      const text = readFileSync(new URL('./models.json', import.meta.url))
      const { providers } = JSON.parse(text.toString()) as ShippedModels
      const entries = Object.entries(providers).map(
        ([id, { models }]) => [id, new Map(Object.entries(models))] as const,
      )
      this.#read = { providers: new Map(entries), digest: hexDigest('sha256', text) }
    }
    return this.#read
  }

  get providers() {
    return this.#content().providers
  }

  get digest() {
    return this.#content().digest
  }
}

const shipped: readonly CatalogSource[] = [shippedFamilies, new ShippedSource()]

export const shippedCatalog = new ModelCatalog(shipped)

/** Returns the catalog with these sources, of which the later ones win, and the problems of these sources. */
export function catalogWith(texts: readonly CatalogText[]): {
  readonly catalog: ModelCatalog
  readonly problems: readonly string[]
} {
  if (texts.length === 0) return { catalog: shippedCatalog, problems: [] }
  const read = texts.map(({ name, text }) => {
    const { problems, ...content } = readCatalog(text)
    const source = { ...content, digest: hexDigest('sha256', text) }
    return { source, problems: problems.map((problem) => `${name}: ${problem}`) }
  })
  return {
    catalog: new ModelCatalog([...shipped, ...read.map(({ source }) => source)]),
    problems: read.flatMap(({ problems }) => problems),
  }
}
