/** Conditions of failover that a target of a virtual model has for itself. */
import { expect, it } from 'vitest'
import { servedModel } from '../support/manifests.ts'
import { type Answer, json, openStream, sendEvent } from '../support/vendors/vendor.ts'
import { failsC } from '../support/vendors/vendor-c.ts'
import { hello, urlOf, useServedModels } from './served-models-rig.ts'

const models = await useServedModels(({ a, b, c }) => [
  ...Object.entries({ first: a, second: b }).map(([name, { port }]) =>
    servedModel(name, {
      match: { model: `${name}-*` },
      visibility: 'Internal',
      provider: 'OpenAI',
      baseURL: `http://127.0.0.1:${port}/v1`,
    }),
  ),
  servedModel('other-vendor', {
    match: { model: 'other-*' },
    visibility: 'Internal',
    provider: 'Anthropic',
    baseURL: urlOf(c),
  }),
  servedModel('missing', {
    virtualModel: {
      failover: {
        targets: [
          {
            modelRef: { name: 'other-vendor' },
            priority: 0,
            model: 'other-c',
            conditions: { modelNotFound: true },
          },
          { modelRef: { name: 'first' }, priority: 1, model: 'first-a', conditions: {} },
          { modelRef: { name: 'second' }, priority: 2, model: 'second-b' },
        ],
        conditions: { statuses: [404] },
      },
    },
  }),
])
const { a, b, c } = models

const answers =
  (status: number, code: string, message: string): Answer =>
  (_, response) =>
    json(response, status, { error: { message, type: 'invalid_request_error', param: null, code } })
const streamed = async () => {
  const request = { model: 'missing', messages: hello }
  const stream = models.openai().chat.completions.stream(request)
  return (await stream.finalChatCompletion()).choices[0]?.message.content
}

it('[FailoverModelTarget.conditions] [FailoverConditions.modelNotFound] conditions of a target replace those of all targets', async () => {
  const gone = failsC(404, 'not_found_error', 'model: other-c')
  c.next.push(gone)
  expect(await models.textOf('missing')).toBe('from A')
  c.next.push(gone)
  expect(await streamed()).toBe('from A')
  c.next.push((_, response) => {
    openStream(response)
    const error = { type: 'not_found_error', message: 'model: other-c' }
    sendEvent(response, { type: 'error', error }, 'error')
    response.end()
  })
  expect(await streamed()).toBe('from A')
  const named = answers(400, '', 'The model `x` does not exist.')
  c.next.push(named)
  expect(await models.textOf('missing')).toBe('from A')
  expect(models.sentTo(c)).toEqual(Array(4).fill('other-c'))
  // The usual ones apply to A, and those of all targets to B.
  c.next.push(gone)
  a.next.push(answers(404, 'model_not_found', 'no'))
  await expect(models.textOf('missing')).rejects.toMatchObject({
    status: 404,
    code: 'model_not_found',
  })
  expect(models.sentTo(b)).toEqual([])
  // It is not ejected, and other failures of it are not its conditions.
  c.next.push(failsC(400, 'invalid_request_error', 'wrong'))
  await expect(models.textOf('missing')).rejects.toMatchObject({ status: 400 })
})
