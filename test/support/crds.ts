/** Installs custom resource definitions in a test's API server. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseAllDocuments } from 'yaml'
import type { ApiServer } from './api-server.ts'

/** What this file reads of a CustomResourceDefinition. */
export interface Crd {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string; readonly kind: string }
    readonly versions: readonly { readonly name: string; readonly served: boolean }[]
  }
}

const crdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const establishedWithinMs = 120_000

/** Every CustomResourceDefinition in the YAML files of a folder, not of its subfolders. */
export function readCrds(folder: string): readonly Crd[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .sort()
    .flatMap((name) => parseAllDocuments(readFileSync(join(folder, name), 'utf8')))
    .map((document) => document.toJS() as Crd | null)
    .filter((object) => object?.kind === 'CustomResourceDefinition')
    .map((object) => object as Crd)
}

/**
 * Creates the definitions and waits until each is established and its objects can be listed.
 * @throws with the server's message when it refuses one, or names what keeps one from being served
 */
export async function installCrds(server: ApiServer, crds: readonly Crd[]): Promise<void> {
  for (const crd of crds) {
    const { status, body } = await server.request('POST', crdPath, crd)
    if (status !== 201) throw new Error(`${crd.metadata.name}: ${status} ${body.message}`)
  }
  await Promise.all(crds.map((crd) => whenServed(server, crd)))
}

async function whenServed(server: ApiServer, crd: Crd): Promise<void> {
  const { group, names, versions } = crd.spec
  const deadline = performance.now() + establishedWithinMs
  for (;;) {
    const { body } = await server.request('GET', `${crdPath}/${crd.metadata.name}`)
    const conditions: { type: string; status: string }[] = body.status?.conditions ?? []
    if (conditions.some(({ type, status }) => type === 'Established' && status === 'True')) {
      const answers = await Promise.all(
        versions
          .filter(({ served }) => served)
          .map(({ name }) => server.request('GET', `/apis/${group}/${name}/${names.plural}`)),
      )
      if (answers.every(({ status }) => status === 200)) return
    }
    if (performance.now() > deadline) {
      throw new Error(`${crd.metadata.name} is not served: ${JSON.stringify(conditions)}`)
    }
    await pause(25)
  }
}
