/**
 *             deciding -> forwarding -> answering -> relaying -> flushing -> over
 *                 \           ^  \          |  \-> tunnel --------------------^
 *                  \          '---\---------'                                 |
 *                   '--------------'-- respond -----------> flushing ---------'
 *
 * `deciding`: onRequest was told. `forwarding`: an upstream works. `answering`: onResponse or
 * onError was told. `flushing`: everything is written, the client still reads.
 */
export type ExchangePhase =
  | 'deciding'
  | 'forwarding'
  | 'answering'
  | 'relaying'
  | 'flushing'
  | 'tunnel'
  | 'over'
