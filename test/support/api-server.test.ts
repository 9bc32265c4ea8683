import { expect, it } from 'vitest'
import { apiServerParts, startApiServer } from './api-server.ts'
import { useFixture } from './fixture.ts'
import { describeWithParts } from './parts.ts'

describeWithParts(apiServerParts, 'the API server of the tests', () => {
  const server = useFixture(
    () => startApiServer(),
    (part) => part.stop(),
  )

  it('has the version that go.mod pins', async () => {
    const { status, body } = await server.request('GET', '/version')
    expect(status).toBe(200)
    expect(body.gitVersion).toMatch(/^v1\.36\.\d+$/)
  })

  it('creates, patches and deletes an object, and reports the field that it refuses', async () => {
    const path = '/api/v1/namespaces/default/configmaps'
    const map = { metadata: { name: 'm' }, data: { a: '1' } }
    expect((await server.request('POST', path, map)).status).toBe(201)
    const patched = await server.request('PATCH', `${path}/m`, { data: { a: '2' } })
    expect(patched.body.data).toEqual({ a: '2' })
    const refused = await server.request('POST', path, { metadata: { name: 'Not A Name' } })
    expect(refused.status).toBe(422)
    expect(refused.body.details.causes[0].field).toBe('metadata.name')
    expect((await server.request('DELETE', `${path}/m`)).status).toBe(200)
    expect((await server.request('GET', `${path}/m`)).status).toBe(404)
  })

  it('issues service account tokens that it can review', async () => {
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    await server.request('POST', accounts, { metadata: { name: 'proxy' } })
    const issued = await server.request('POST', `${accounts}/proxy/token`, {
      spec: { audiences: ['sluice'] },
    })
    const review = await server.request('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      spec: { token: issued.body.status.token, audiences: ['sluice'] },
    })
    expect(review.body.status).toMatchObject({
      authenticated: true,
      user: { username: 'system:serviceaccount:default:proxy' },
    })
  })
})
