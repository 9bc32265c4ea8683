/** Fields that the gateway decides reach a provider once, and under one name. */
import { beforeEach, expect, it } from 'vitest'
import { reached, routes, useFleet } from '../support/vendors/fleet.ts'
import { completes } from '../support/vendors/vendor-a.ts'

const secrets = [{ regex: { matches: ['SECRET[0-9]+'] } }]

const fleet = useFleet(({ at }) => {
  const to = (more: object = {}) => ({ vendorA: more, ...at('a') })
  const shaped = (ai: object) => ({ ai: { routes, ...ai } })
  return [
    reached('plain', to()),
    reached('pinned', to({ model: 'cheap' })),
    reached('aliased', to(), shaped({ modelAliases: { fast: 'cheap' } })),
    reached('overridden', to(), shaped({ overrides: [{ field: 'effort', value: 'low' }] })),
    reached('default', to(), shaped({ defaults: [{ field: 'max_tokens', value: 9 }] })),
    reached(
      'prompted',
      to(),
      shaped({ prompt: { prepend: [{ role: 'SYSTEM', content: 'Be kind.' }] } }),
    ),
    reached('guarded', to(), shaped({ promptGuard: { request: secrets } })),
  ]
})
beforeEach(() => {
  fleet.forget()
  fleet.vendors.a.answer = completes('Hello')
})

const messages = '"messages":[{"role":"user","content":"x"}]'
const send = (name: string, fields: string) =>
  fetch(`${fleet.base(name)}/v1/chat/completions`, {
    method: 'POST',
    body: `{${fields},${messages}}`,
  })
const sent = () => fleet.vendors.a.calls.map(({ text }) => text).join('\n')

it.each([
  ['pinned', '"model":"a","Model":"expensive"', 'model'],
  ['aliased', '"model":"fast","MODEL":"expensive"', 'model'],
  ['plain', '"model":"a","MAX_TOKENS":99999', 'max_tokens'],
  ['plain', '"model":"a","ſtream":true', 'stream'],
  ['plain', '"model":"a","\\u004dodel":"b"', 'model'],
  ['plain', '"model":"a","stream":true,"stream_options":{"Include_Usage":false}', 'include_usage'],
  ['overridden', '"model":"a","Effort":"high"', 'effort'],
  ['default', '"model":"a","Max_Tokens":99999', 'max_tokens'],
  ['prompted', '"model":"a","Messages":[]', 'messages'],
  ['guarded', '"model":"a","Model":"expensive"', 'model'],
  ['guarded', '"model":"a","Max_Tokens":5', 'max_tokens'],
])('the backend %s refuses %s', async (name, fields, field) => {
  const answer = await send(name, fields)
  expect(answer.status).toBe(400)
  expect(await answer.text()).toContain(`must be ${field}`)
  expect(fleet.vendors.a.calls).toHaveLength(0)
})

it.each([
  ['plain', '"model":"expensive","model":"cheap"'],
  ['plain', '"mod\\u0065l":"expensive","model":"cheap"'],
  ['pinned', '"model":"expensive","model":"cheap"'],
  ['guarded', '"model":"expensive","model":"cheap"'],
  ['plain', '"max_tokens":99999,"model":"cheap","max_tokens":5'],
  ['guarded', '"max_tokens":99999,"model":"cheap","max_tokens":5'],
  ['overridden', '"effort":"expensive","model":"cheap","effort":"low"'],
])('the backend %s sends one value for each key of %s', async (name, fields) => {
  expect((await send(name, fields)).status).toBe(200)
  expect(sent()).toContain('"model":"cheap"')
  expect(sent()).not.toMatch(/expensive|99999/)
})

it('sends fields of other names as they come', async () => {
  expect((await send('plain', '"model":"cheap","safetySettings":[],"MyField":1')).status).toBe(200)
  expect(sent()).toContain('"safetySettings":[],"MyField":1')
})
