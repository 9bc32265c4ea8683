/**
 *             deciding -> forwarding -> answering -> relaying -> flushing -> over
 *                 \           ^  \          |  \-> tunnel --------------------^
 *                  \          '---\---------'                                 |
 *                   '--------------'-- respond -----------> flushing ---------'
 *
 * `deciding`: onRequest was called. `forwarding`: an upstream has the request. `answering`: onResponse
 * or onError was called. `flushing`: everything is written, but the client has not read all of it.
 */
export type ExchangePhase =
  | 'deciding'
  | 'forwarding'
  | 'answering'
  | 'relaying'
  | 'flushing'
  | 'tunnel'
  | 'over'
