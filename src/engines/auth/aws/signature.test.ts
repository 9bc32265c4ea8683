/** Vectors that AWS has published: the Signature Version 4 test suite, and the example of its docs. */
import { describe, expect, it } from 'vitest'
import { payloadHash, type SignableRequest, signRequest } from './signature.ts'

const credentials = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
}
const time = Date.UTC(2015, 7, 30, 12, 36, 0)
const scope = { region: 'us-east-1', service: 'service' }

const request = (more: Partial<SignableRequest> = {}): SignableRequest => ({
  method: 'GET',
  host: 'example.amazonaws.com',
  path: '/',
  query: undefined,
  headers: [],
  payloadHash: payloadHash(undefined),
  ...more,
})

const latin1 = (text: string) => Buffer.from(text, 'utf8').toString('latin1')

const unreserved = '-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const form: Partial<SignableRequest> = {
  method: 'POST',
  headers: [['content-type', 'application/x-www-form-urlencoded']],
  payloadHash: payloadHash(Buffer.from('Param1=value1')),
}

const suite: readonly (readonly [string, Partial<SignableRequest>, string])[] = [
  ['get-vanilla', {}, '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  [
    'post-vanilla',
    { method: 'POST' },
    '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  ],
  [
    'get-vanilla-query-order-key-case',
    { query: 'Param2=value2&Param1=value1' },
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
  [
    'get-vanilla-utf8-query',
    { query: latin1('ሴ=bar') },
    '2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04',
  ],
  [
    'get-unreserved',
    { path: `/${unreserved}` },
    '07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f',
  ],
  [
    'get-utf8',
    { path: latin1('/ሴ') },
    '8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85',
  ],
  [
    'get-slash-dot-slash, get-relative: normalized to get-vanilla',
    { path: '/example/./..//' },
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  ],
  [
    'post-header-key-sort',
    { method: 'POST', headers: [['my-header1', 'value1']] },
    'c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c',
  ],
  [
    'get-header-value-trim',
    {
      headers: [
        ['my-header1', ' value1'],
        ['my-header2', ' "a   b   c"'],
      ],
    },
    'acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736',
  ],
  [
    'post-x-www-form-urlencoded',
    form,
    'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  ],
]

describe('AWS Signature Version 4', () => {
  it.each(suite)('matches the published signature for %s', (_, more, expected) => {
    const headers = new Map(signRequest(request(more), scope, credentials, time))
    expect(headers.get('x-amz-date')).toBe('20150830T123600Z')
    expect(headers.get('authorization')).toContain(
      'Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=',
    )
    expect(headers.get('authorization')).toMatch(new RegExp(`Signature=${expected}$`))
  })

  it('matches the example in the AWS documentation', () => {
    const listUsers = request({
      host: 'iam.amazonaws.com',
      query: 'Action=ListUsers&Version=2010-05-08',
      headers: [['content-type', 'application/x-www-form-urlencoded; charset=utf-8']],
    })
    const iam = { region: 'us-east-1', service: 'iam' }
    const authorization = signRequest(listUsers, iam, credentials, time).at(-1)?.[1]
    expect(authorization).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7',
    )
  })

  it('includes the session token, and the hash of the body for S3', () => {
    const temporary = { ...credentials, sessionToken: 'token' }
    const headers = new Map(
      signRequest(request(), { region: 'us-east-1', service: 's3' }, temporary, time),
    )
    expect(headers.get('x-amz-security-token')).toBe('token')
    expect(headers.get('x-amz-content-sha256')).toBe(payloadHash(undefined))
    expect(headers.get('authorization')).toContain(
      'SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,',
    )
  })
})
