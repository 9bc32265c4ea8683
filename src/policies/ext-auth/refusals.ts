import type { RespondVerdict } from '../../exchange/exchange.ts'

/** The service said nothing that could be sent on: it refused without a response, or was not reached. */
export const failed: RespondVerdict = {
  kind: 'respond',
  status: 403,
  body: 'external authorization failed',
  reason: 'ExtAuth',
  refusal: true,
}

export const tooLarge: RespondVerdict = { ...failed, status: 413 }
