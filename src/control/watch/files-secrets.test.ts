import { expect, it } from 'vitest'
import { run, write } from '../../../test/support/file-source-rig.ts'
import { eventually } from '../../../test/support/wait-for.ts'

const secret = (name: string, value: string) => `apiVersion: v1
kind: Secret
metadata: { name: ${name} }
stringData: { key: ${value} }
`

/** Runs a source on two Secrets, with a store of their values that collects those that are not live. */
async function runWithValues(confirmMs: number) {
  const values = new Map<string, string>()
  write('a.yaml', secret('a', 'old-a'))
  write('b.yaml', secret('b', 'old-b'))
  const { source, batches } = await run(undefined, {
    keepSecret: (digest, value) => values.set(digest, Buffer.from(value).toString()),
    timing: { debounceMs: 0, confirmMs },
  })
  const collect = () => {
    const live = source.secretDigests()
    for (const digest of values.keys()) if (!live.has(digest)) values.delete(digest)
  }
  return { source, batches, values, collect }
}

it('keeps the values of new content that is not confirmed yet when other values are collected', async () => {
  const { batches, values, collect } = await runWithValues(150)
  const before = batches.length
  write('a.yaml', secret('a', 'new-a'))
  await eventually(() => expect([...values.values()]).toContain('new-a'))
  expect(batches.length).toBe(before)
  collect()
  await eventually(() => expect(batches.length).toBe(before + 1))
  collect()
  expect([...values.values()].sort()).toEqual(['new-a', 'old-b'])
})

it('keeps the values of an object again if they are missing', async () => {
  const { source, values } = await runWithValues(15)
  const [missing] = [...values].find(([, value]) => value === 'old-a') ?? ['']
  values.clear()
  source.observeAgain(new Set([missing]))
  expect([...values.values()]).toEqual(['old-a'])
})

it('warns of a catalog that only deployed proxies read, if it is the gateway that reads the file', async () => {
  write(
    'gp.yaml',
    `apiVersion: sluice.dev/v1alpha1
kind: GatewayParameters
metadata: { name: gp }
spec: { modelCatalog: { sources: [{ configMap: { name: models } }] } }
`,
  )
  const references = { variable: () => undefined, folderOf: () => '', isOfGateway: true }
  const { problems } = await run(undefined, { references })
  expect(problems).toEqual([
    expect.stringMatching(/GatewayParameters default\/gp: spec\.modelCatalog: .*--model-catalog/),
  ])
})
