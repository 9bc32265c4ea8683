/**
 *             deciding -> forwarding -> responding -> relaying -> flushing -> over
 *                 \           ^  \          |  \-> tunnel --------------------^
 *                  \          '---\---------'                                 |
 *                   '--------------'-- respond -----------> flushing ---------'
 *
 * `deciding`: onRequest was called. `forwarding`: an upstream has the request. `responding`: onResponse
 * or onError was called. `flushing`: everything is written, but the client has not read all of it.
 */
export type ExchangePhase =
  | 'deciding'
  | 'forwarding'
  | 'responding'
  | 'relaying'
  | 'flushing'
  | 'tunnel'
  | 'over'
