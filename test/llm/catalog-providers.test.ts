/** Catalogs name providers as telemetry does, or as manifests do. */
import { expect, it } from 'vitest'
import {
  catalogOf,
  knownProviders,
  providerId,
} from '../../src/engines/messages/catalog/read-catalog.ts'
import {
  configOfNamed,
  providerNames,
  vendorNames,
  vendors,
} from '../../src/gateway/backends/ai/providers/index.ts'

it('knows every provider that a request can go to, by its name in telemetry', async () => {
  const own = await Promise.all(
    vendorNames.map(async (name) => (await vendors[name].provider()).default.systemName),
  )
  const named = providerNames.flatMap((name) => configOfNamed(name, {}).systemName ?? [])
  const ids = new Set([...own, ...named].map(providerId))
  expect([...ids].sort()).toEqual([...knownProviders].sort())
})

it('reads the names of manifests', () => {
  const entry = { rates: { input: '1', output: '2' } }
  for (const [name, id] of [
    ['xai', 'x_ai'],
    ['togetherai', 'together_ai'],
    ['mistral', 'mistral_ai'],
    ['gemini', 'gcp.gemini'],
  ] as const) {
    const { problems, providers } = catalogOf({ providers: { [name]: { models: { m: entry } } } })
    expect(problems).toEqual([])
    expect(providers.get(id)?.has('m')).toBe(true)
  }
})

it('reports a provider that no request can go to', () => {
  const { problems } = catalogOf({ providers: { openia: { models: {} } } })
  expect(problems).toEqual([
    'providers.openia: no provider has this name, so the models are not used; did you mean openai?',
  ])
})
