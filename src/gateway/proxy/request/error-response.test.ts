import { describe, expect, it } from 'vitest'
import { CoreTrap } from '../../../engines/core/errors.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import { FieldPairs } from '../../../ground/exchange/memory-message.ts'
import { errorResponse, toGatewayError, verdictResponse } from './error-response.ts'

const plain = new FieldPairs([])

describe('errorResponse', () => {
  it('sends the text of the error catalogue and hides the details', () => {
    const error = new GatewayError('connect_failed', '10.0.0.7:8080').at('endpoint 10.0.0.7:8080')
    expect(errorResponse(error, plain)).toEqual({
      status: 503,
      headers: [
        ['content-type', 'text/plain'],
        ['proxy-status', 'sluice; error=destination_unavailable'],
      ],
      body: 'upstream call failed: connection failure',
    })
  })

  it('maps an unknown error to bug, and a trap of the core to core_trapped', () => {
    expect(toGatewayError(new TypeError('secret')).code).toBe('bug')
    expect(errorResponse(toGatewayError(new TypeError('secret')), plain).body).toBe(
      'internal error',
    )
    expect(toGatewayError(new CoreTrap('match_request', undefined)).code).toBe('core_trapped')
  })

  it.each([
    ['bad_request', '13'],
    ['destination_refused', '7'],
    ['route_not_found', '12'],
    ['upstream_malformed', '14'],
    ['no_endpoints', '14'],
    ['route_timeout', '14'],
    ['no_backends', '14'],
    ['backend_invalid', '2'],
    ['misdirected', '2'],
  ] as const)('gives a gRPC client %s as grpc-status %s', (code, status) => {
    const grpc = new FieldPairs([['Content-Type', 'application/grpc']])
    const { headers, body, status: http } = errorResponse(new GatewayError(code), grpc)
    expect(http).toBe(200)
    expect(headers).toContainEqual(['grpc-status', status])
    expect(body).toBe(undefined)
  })
})

describe('verdictResponse', () => {
  const refused = {
    kind: 'respond',
    status: 401,
    headers: [['www-authenticate', 'Basic']],
    body: 'no credentials',
    reason: 'BasicAuth',
  } as const
  const grpc = new FieldPairs([['content-type', 'application/grpc+proto']])

  it('turns a refusal into a gRPC status, and keeps its headers', () => {
    const { status, headers, body } = verdictResponse({ ...refused, refusal: true }, grpc)
    expect([status, body]).toEqual([200, undefined])
    expect(Object.fromEntries(headers)).toEqual({
      'content-type': 'application/grpc',
      'grpc-status': '16',
      'grpc-message': 'no credentials',
      'www-authenticate': 'Basic',
      'proxy-status': 'sluice; error=http_request_denied',
    })
  })

  it('does not change configured direct responses', () => {
    expect(verdictResponse(refused, grpc)).toMatchObject({ status: 401, headers: refused.headers })
  })
})
