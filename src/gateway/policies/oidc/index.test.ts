import { describe, expect, it } from 'vitest'
import type { References } from '../../../ground/model/references.ts'
import { oidc } from './index.ts'

const problemsOf = (spec: object) =>
  oidc.compile?.({ issuer: 'https://idp.example.com', clientId: 'a', ...spec }, {
    issuerProblem: () => undefined,
  } as unknown as References).problems

describe('oidc', () => {
  it('refuses URLs that cannot be parsed, with the name of the field', () => {
    const url = 'https://idp.example.com:99999/'
    for (const path of ['issuer', 'tokenEndpoint', 'jwksURI', 'redirectURI']) {
      expect(problemsOf({ [path]: url })).toEqual([{ path, message: `${url} is not a valid URL` }])
    }
    expect(problemsOf({ redirectURI: '/callback' })).toEqual([])
  })
})
