import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { foldRecording, readManifests } from '../../tools/cli/recording/recording.ts'
import { readText } from './read-text.ts'

const root = join(import.meta.dirname, '..', '..', '..')
const folders = ['examples', 'test/flow'].flatMap((folder) =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(root, folder, entry.name)),
)

describe('texts of what derivations read', () => {
  it('describes every key that derivations read in the examples and test cases', async () => {
    const keys = new Set<string>()
    for (const folder of folders) {
      const fold = await foldRecording(await readManifests([folder]))
      for (const { ref } of fold.graph.objects()) {
        const reads = fold.graph.derivationsOf(ref).flatMap((derivation) => derivation.reads)
        for (const key of reads) keys.add(key.replace('\0', ' '))
      }
    }
    expect(keys.size).toBeGreaterThan(100)
    expect([...keys].filter((key) => readText(key) === key)).toEqual([])
  })

  it.each([
    ['object:Service/shop/cart', 'Service shop/cart'],
    ['value:route-claims:HTTPRoute/shop/cart', 'HTTPRoute shop/cart'],
    ['fact:dynamic-keys:shop', 'dynamic API keys in namespace shop'],
    ['fact:refused:HTTPRoute/shop/cart', 'whether a proxy rejected HTTPRoute shop/cart'],
    [
      'fact:key-set://idp.example:443/keys#GatewayBackend/shop/idp',
      'keys of idp.example:443/keys (GatewayBackend shop/idp)',
    ],
    [
      'relation:claims GRPCRoute listener/Gateway/shop/edge/web *.com',
      'GRPCRoutes for *.com on listener web of Gateway shop/edge',
    ],
    [
      'relation:claims GRPCRoute listener/Gateway/shop/edge/web =shop.example',
      'GRPCRoutes for shop.example on listener web of Gateway shop/edge',
    ],
    [
      'relation:policy-claims PreRouting traffic.cors Gateway/shop/edge#web',
      'policies that set traffic.cors before routing on web of Gateway shop/edge',
    ],
    ['index:labelled GatewayPolicy/shop', 'GatewayPolicies with labels in namespace shop'],
    ['index:services ', 'Services in all namespaces'],
    ['fact:something-new:shop/cart', 'fact:something-new:shop/cart'],
  ])('of %s', (key, text) => {
    expect(readText(key)).toBe(text)
  })
})
