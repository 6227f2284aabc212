# The client program of `make bench-peers`. etcd's protocol is taken from where Debian's package
# golang-etcd-server-dev has it.
.PHONY: peers
peers: build/peers/driver

PEERS_CXXFLAGS = -std=c++17 -O2 -Wall -Wextra -pthread $(if $(WERROR),-Werror)
PEERS_LIBS = $(shell pkg-config --libs grpc++ protobuf hiredis) -L$(libdir) -lpq
PEERS_OBJS = $(patsubst $(TOP)/bench/%.cpp,build/%.o,$(wildcard $(TOP)/bench/peers/*.cpp))

GOCODE ?= /usr/share/gocode/src
ETCD_PROTO = etcd/etcdserver/etcdserverpb/rpc etcd/etcdserver/api/v3lock/v3lockpb/v3lock \
	etcd/mvcc/mvccpb/kv etcd/auth/authpb/auth gogoproto/gogo google/api/annotations google/api/http
ETCD_SERVICES = $(filter %/rpc %/v3lock,$(ETCD_PROTO))
ETCD_OBJS = $(ETCD_PROTO:%=build/peers/%.pb.o) $(ETCD_SERVICES:%=build/peers/%.grpc.pb.o)

build/peers/driver: $(PEERS_OBJS) $(ETCD_OBJS)
	$(CXX) $(PEERS_CXXFLAGS) -o $@ $^ $(PEERS_LIBS)
$(PEERS_OBJS): build/%.o: $(TOP)/bench/%.cpp $(TOP)/bench/peers/contender.hpp build/peers/protocol
	$(CXX) $(PEERS_CXXFLAGS) -I$(includedir) -isystem build/peers -c -o $@ $<
$(ETCD_OBJS): %.o: build/peers/protocol
	$(CXX) -std=c++17 -O1 -Ibuild/peers -c -o $@ $*.cc
build/peers/protocol:
	@$(MKDIR_P) $(@D)
	protoc --proto_path=$(GOCODE)/go.etcd.io --proto_path=$(GOCODE)/github.com/gogo/protobuf \
		--proto_path=$(GOCODE)/github.com/grpc-ecosystem/grpc-gateway/third_party/googleapis \
		--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) \
		--cpp_out=build/peers --grpc_out=build/peers $(ETCD_PROTO:%=%.proto)
	touch $@
