/** What users can write about credentials of clouds. */
import { choice, list, object, optional, required, text } from '../../../../ground/schema/field.ts'
import { atMostOneOf, exactlyOneOf, rule } from '../../../../ground/schema/rules.ts'
import { localReference, secretKeyReference } from '../../../../ground/schema/shapes/references.ts'
import {
  celExpression,
  longString,
  shortString,
  tinyString,
} from '../../../../ground/schema/strings.ts'

const sessionName = text({
  name: 'RoleSessionName',
  min: 2,
  max: 64,
  pattern: '^[A-Za-z0-9_+=,.@-]{2,64}$',
  expects: 'a name of 2 to 64 letters, digits and +=,.@-',
})

const assumeRole = object(
  'AwsAssumeRole',
  {
    roleArn: required(
      text({
        name: 'RoleArn',
        min: 20,
        max: 2048,
        pattern: '^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$',
        expects: 'the ARN of a role, arn:aws:iam::ACCOUNT:role/NAME',
      }),
      'The role.',
    ),
    sessionName: optional(sessionName, { doc: 'Name of the session.', default: 'sluice' }),
    sessionNameExpression: optional(
      celExpression,
      'Expression of the name of the session, such as `jwt.sub`. A request is refused if it gives no valid name.',
    ),
    tags: optional(
      list(
        object(
          'AwsSessionTag',
          {
            key: required(text({ min: 1, max: 128 }), 'Name of the tag.'),
            value: optional(text({ max: 256 }), 'Value of the tag.'),
            expression: optional(
              celExpression,
              'Expression of the value. A request is refused if it gives no valid value.',
            ),
          },
          { rules: [exactlyOneOf('value', 'expression')] },
        ),
        { max: 50 },
      ),
      'Tags of the session, which policies of AWS can read.',
    ),
  },
  { rules: [atMostOneOf('sessionName', 'sessionNameExpression')] },
)

export const awsAuth = object(
  'AwsAuth',
  {
    secretRef: optional(
      localReference('Secret'),
      'Secret with accessKey, secretKey and optionally sessionToken. If not set, the credentials of the environment that the gateway runs in, as the AWS SDKs find them.',
    ),
    assumeRole: optional(
      assumeRole,
      'Role that the gateway assumes with the credentials of its environment.',
    ),
    serviceName: optional(tinyString, 'Service of the signature. If not set, from the host.'),
    region: optional(tinyString, 'Region of the signature. If not set, from the host.'),
  },
  { rules: [atMostOneOf('secretRef', 'assumeRole')] },
)

export const azureAuth = object(
  'AzureAuth',
  {
    secretRef: optional(
      localReference('Secret'),
      'Secret with clientID, tenantID and clientSecret.',
    ),
    managedIdentity: optional(
      object(
        'AzureManagedIdentity',
        {
          clientId: optional(shortString, 'Client id of the identity.'),
          objectId: optional(shortString, 'Object id of the identity.'),
          resourceId: optional(longString, 'Resource id of the identity.'),
        },
        { rules: [exactlyOneOf('clientId', 'objectId', 'resourceId')] },
      ),
      'Managed identity of the machine.',
    ),
    workloadIdentity: optional(
      object('AzureWorkloadIdentity', {}),
      'Workload identity of the cluster, as its webhook configures it in the environment.',
    ),
    resource: optional(longString, {
      doc: 'Application that the token is for, such as `api://ID` or `https://graph.microsoft.com`.',
      default: 'https://cognitiveservices.azure.com',
    }),
  },
  { rules: [atMostOneOf('secretRef', 'managedIdentity', 'workloadIdentity')] },
)

export const gcpAuth = object(
  'GcpAuth',
  {
    type: optional(
      choice('GcpTokenType', {
        AccessToken: 'a token of Google APIs',
        IdToken: 'a token for one audience, such as a Cloud Run service',
      }),
      { doc: 'Type of the token.', default: 'AccessToken' },
    ),
    secretRef: optional(
      secretKeyReference('CredentialFileReference', 'credentials.json'),
      'Secret with a credential file. If not set, the credentials of the environment, as the Google SDKs find them.',
    ),
    audience: optional(longString, 'Audience of an IdToken. If not set, `https://` and the host.'),
  },
  {
    rules: [
      rule<{ readonly type?: string; readonly audience?: string }>({
        message: 'audience is only for type IdToken',
        cel: "!has(self.audience) || (has(self.type) && self.type == 'IdToken')",
        holds: ({ type, audience }) => audience === undefined || type === 'IdToken',
        at: 'audience',
      }),
    ],
  },
)
