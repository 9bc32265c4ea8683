/** The errors of the catalogue that the gateway only reports, and never sends to clients. */
import { type ErrorRow, withoutResponse } from './row.ts'

export const unansweredErrors = {
  port_in_use: withoutResponse(
    'port is already in use',
    'A listener port cannot be bound. The listener is not programmed.',
  ),
  port_shared: withoutResponse(
    'another Gateway sets the connections of the port',
    'Gateways that share a port have different settings for its connections. Those of the oldest policy apply.',
  ),
  port_not_permitted: withoutResponse(
    'no permission to listen on the port',
    'The process may not listen on a listener port. Ports below 1024 need a privilege: the capability CAP_NET_BIND_SERVICE, or a lower `net.ipv4.ip_unprivileged_port_start`. The listener is not programmed.',
  ),
  address_unusable: withoutResponse(
    'address cannot be listened on',
    'An address of the process itself, such as the admin address, cannot be bound. The process exits.',
  ),
  certificate_unusable: withoutResponse(
    'certificate cannot be used',
    'OpenSSL rejects a listener certificate, or the certificate has not arrived. The previous certificate stays in use; without one, handshakes fail.',
  ),
  resource_unreadable: withoutResponse(
    'configuration resource cannot be read',
    'A proxy received a resource of a type or shape that its version does not know.',
  ),
  resource_partly_known: withoutResponse(
    'configuration resource has fields that are not known',
    'A proxy received a resource with fields that its version does not know. It uses the fields that it knows.',
  ),
  event_too_large: withoutResponse(
    'object is too large for the event log',
    'The object does not fit into one event of the log.',
  ),
  log_conflict: withoutResponse(
    'the log has moved on',
    'An append named an expected version that is no longer the last.',
  ),
} as const satisfies Record<string, ErrorRow>
