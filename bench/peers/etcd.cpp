// etcd by its own recipes: a key that is put if it is not there, bound to a session (an etcd lease
// that is made once); to wait, the server's Lock service. Keys of a session end with its TTL.
#include "contender.hpp"

#include "etcd/etcdserver/api/v3lock/v3lockpb/v3lock.grpc.pb.h"
#include "etcd/etcdserver/etcdserverpb/rpc.grpc.pb.h"

#include <grpcpp/grpcpp.h>

#include <stdexcept>

namespace peers {
namespace {

namespace pb = etcdserverpb;
constexpr int session_seconds = 600;

void check(const grpc::Status &status) {
    if (!status.ok())
        throw std::runtime_error("etcd: " + status.error_message());
}

// gRPC shares connections between channels to one address, unless it is told not to.
std::shared_ptr<grpc::Channel> connect() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("unix:" + environment("ETCD_SOCKET"),
                                     grpc::InsecureChannelCredentials(), arguments);
}

std::int64_t open_session(const std::shared_ptr<grpc::Channel> &channel) {
    grpc::ClientContext context;
    pb::LeaseGrantRequest request;
    pb::LeaseGrantResponse response;
    request.set_ttl(session_seconds);
    check(pb::Lease::NewStub(channel)->LeaseGrant(&context, request, &response));
    return response.id();
}

class Etcd : public Taker {
public:
    explicit Etcd(std::string owner)
        : owner(std::move(owner)), channel(connect()), kv(pb::KV::NewStub(channel)),
          session(open_session(channel)) {}

    // One round trip, as a client's lock makes it: put the key if nobody has, else say who did.
    bool take(const std::string &name) override {
        grpc::ClientContext context;
        pb::TxnRequest request;
        pb::TxnResponse response;
        pb::Compare *compare = request.add_compare();
        compare->set_key(name);
        compare->set_target(pb::Compare::CREATE);
        compare->set_result(pb::Compare::EQUAL);
        compare->set_create_revision(0);
        pb::PutRequest *put = request.add_success()->mutable_request_put();
        put->set_key(name);
        put->set_value(owner);
        put->set_lease(session);
        request.add_failure()->mutable_request_range()->set_key(name);
        check(kv->Txn(&context, request, &response));
        return response.succeeded();
    }

    void release(const std::string &name) override {
        grpc::ClientContext context;
        pb::DeleteRangeRequest request;
        pb::DeleteRangeResponse response;
        request.set_key(name);
        check(kv->DeleteRange(&context, request, &response));
        if (response.deleted() != 1)
            throw std::runtime_error("etcd: the lock was not ours to release");
    }

protected:
    std::string owner;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<pb::KV::Stub> kv;
    std::int64_t session;
};

// Looks before it tries: a transaction that could write goes to the log, even if it does not.
class LookingEtcd : public Etcd {
public:
    using Etcd::Etcd;

    bool take(const std::string &name) override {
        grpc::ClientContext context;
        pb::RangeRequest request;
        pb::RangeResponse response;
        request.set_key(name);
        check(kv->Range(&context, request, &response));
        return response.kvs_size() == 0 && Etcd::take(name);
    }
};

class QueueingEtcd : public Waiter {
public:
    QueueingEtcd()
        : channel(connect()), lock(v3lockpb::Lock::NewStub(channel)),
          session(open_session(channel)) {}

    void wait() override {
        grpc::ClientContext context;
        v3lockpb::LockRequest request;
        v3lockpb::LockResponse response;
        request.set_name("turn");
        request.set_lease(session);
        check(lock->Lock(&context, request, &response));
        key = response.key();
    }

    void release() override {
        grpc::ClientContext context;
        v3lockpb::UnlockRequest request;
        v3lockpb::UnlockResponse response;
        request.set_key(key);
        check(lock->Unlock(&context, request, &response));
    }

private:
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v3lockpb::Lock::Stub> lock;
    std::int64_t session;
    std::string key;
};

} // namespace

std::unique_ptr<Taker> etcd_taker(const std::string &contender, const std::string &owner) {
    if (contender == "etcd")
        return std::make_unique<Etcd>(owner);
    if (contender == "etcd_looking")
        return std::make_unique<LookingEtcd>(owner);
    return nullptr;
}

std::unique_ptr<Waiter> etcd_waiter(const std::string &contender, const std::string &) {
    return contender == "etcd" ? std::make_unique<QueueingEtcd>() : nullptr;
}

} // namespace peers
