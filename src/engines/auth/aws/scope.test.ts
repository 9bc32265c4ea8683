import { expect, it } from 'vitest'
import { scopeOfHost } from './scope.ts'

it.each([
  ['bedrock-runtime.us-east-1.amazonaws.com', 'us-east-1', 'bedrock'],
  ['bedrock-runtime-fips.us-gov-west-1.amazonaws.com:443', 'us-gov-west-1', 'bedrock'],
  ['bedrock-agentcore.eu-central-1.amazonaws.com', 'eu-central-1', 'bedrock-agentcore'],
  ['s3.us-west-2.amazonaws.com', 'us-west-2', 's3'],
  ['bucket.s3.dualstack.us-west-2.amazonaws.com', 'us-west-2', 's3'],
  ['abc123.execute-api.ap-south-1.amazonaws.com', 'ap-south-1', 'execute-api'],
  ['search-x.eu-west-1.es.amazonaws.com', 'eu-west-1', 'es'],
  ['abc.lambda-url.us-east-2.on.aws', 'us-east-2', 'lambda'],
  ['runtime.sagemaker.us-east-1.amazonaws.com', 'us-east-1', 'sagemaker'],
  ['sqs.cn-north-1.amazonaws.com.cn', 'cn-north-1', 'sqs'],
  ['iam.amazonaws.com', 'us-east-1', 'iam'],
  ['127.0.0.1:8000', 'eu-west-3', 'execute-api'],
])('returns region and service for %s', (host, region, service) => {
  expect(scopeOfHost(host, 'eu-west-3')).toEqual({ region, service })
})
